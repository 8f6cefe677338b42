"""`Trace`, the one model of a recording, and the tables that it is made of."""
