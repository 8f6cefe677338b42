"""Recordings that others made: one dialect of trace files a module."""
