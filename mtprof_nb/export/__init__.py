"""Files: one format a module, one verb, `write(trace, path)`."""
