"""Columns that are computed from recorded events: links of autograd, phases, memory. For recording and for reading."""
