"""The text of a trace file: blocks, JSON, damaged places."""
