"""Tables of operators and lines, and the page and text without scripts."""
