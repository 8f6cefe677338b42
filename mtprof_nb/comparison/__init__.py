"""Comparison of two programs: what changed in their recordings, and whether one is faster."""
