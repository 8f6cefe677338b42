"""Pure functions of a finished `Trace`."""
