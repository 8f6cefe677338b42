"""The tab *Overview*."""
