"""The table of operators: groups of events, their costs, and columns."""
