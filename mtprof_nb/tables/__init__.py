"""Answers about a recording: events, averages, lines, and their text tables."""
