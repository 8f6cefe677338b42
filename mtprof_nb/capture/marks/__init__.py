"""Marks in the code of a cell, which tell the line that was running."""
