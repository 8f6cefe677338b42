"""The tab *Memory*."""
