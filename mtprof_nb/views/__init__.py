"""Plotly figures and widgets for a notebook: functions of a `Trace`."""
