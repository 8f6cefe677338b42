"""The file of a recording: a zip of `.npy` columns, and JSON for all else that the schema of `Trace` has."""
