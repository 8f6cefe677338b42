"""Marks in the code of a cell, which show the line that was running."""
