"""The tab *Differences*."""
