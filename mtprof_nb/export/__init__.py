"""One module per file format, each with `write(trace, path)`."""
