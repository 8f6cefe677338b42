"""The table of operators: groups of events, their costs, columns and sort keys."""
