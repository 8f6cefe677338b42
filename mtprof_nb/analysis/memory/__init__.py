"""Memory: how much was held when, and by whom."""
