"""The tab *Two timelines*."""
