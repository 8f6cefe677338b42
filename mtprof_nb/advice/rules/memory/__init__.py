"""Rules about the peak of memory, and memory that grows."""
