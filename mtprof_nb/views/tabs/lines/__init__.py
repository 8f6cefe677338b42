"""The tab *Lines*."""
