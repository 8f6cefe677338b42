"""The tab *Steps*."""
