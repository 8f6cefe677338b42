"""`load`: a recording from one file or from many."""
