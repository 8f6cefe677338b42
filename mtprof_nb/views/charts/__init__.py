"""Drawings: timeline, stacks, memory."""
