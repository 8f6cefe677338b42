"""The tab *Ranks*."""
