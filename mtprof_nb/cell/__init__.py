"""One profiled cell: its flags, its rewritten source, its recording, the delivery of the result."""
