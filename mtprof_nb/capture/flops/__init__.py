"""Numbers of floating point operations, from formulas and recorded shapes."""
