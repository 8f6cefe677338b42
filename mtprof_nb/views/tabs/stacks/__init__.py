"""The tab *Stacks*."""
