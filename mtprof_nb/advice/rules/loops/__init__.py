"""Rules about Python loops, and about ops too small for the time between them."""
