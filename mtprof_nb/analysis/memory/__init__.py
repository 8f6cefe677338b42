"""What was held, by whom, and when."""
