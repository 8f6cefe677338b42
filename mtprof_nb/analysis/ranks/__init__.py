"""Ranks: processes of one job side by side, the collectives in which they meet, and who waits for whom."""
