"""The tab *Timeline*."""
