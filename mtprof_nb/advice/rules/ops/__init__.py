"""Rules about single ops and short chains of them."""
