"""The time of the program: without the profiler's own, between ops, in chosen ops, in loading data."""
