"""Where the time of each thread went: in ops, in Python code or in waiting, by stack and by function."""
