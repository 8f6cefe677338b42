"""Rules about time in which the program waits or prepares."""
