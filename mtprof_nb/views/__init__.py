"""What a notebook shows: plotly figures and widgets, functions of a `Trace`."""
