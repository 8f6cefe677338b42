"""The panel of a notebook, and plotly figures: functions of a `Trace`."""
