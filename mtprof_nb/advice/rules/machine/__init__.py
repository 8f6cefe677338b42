"""Rules about threads, processors and processes."""
