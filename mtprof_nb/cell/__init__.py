"""One profiled cell: its flags, its source, its recording, the line that says so."""
