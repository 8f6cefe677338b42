"""Tables of operators and lines."""
