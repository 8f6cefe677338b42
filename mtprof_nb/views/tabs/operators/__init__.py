"""The tab *Operators*."""
