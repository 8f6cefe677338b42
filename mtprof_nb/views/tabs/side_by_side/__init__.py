"""The tab *Changed lines*."""
