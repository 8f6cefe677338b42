"""A plotly figure of a recording, which says so if the recording covers a part of the run alone."""

from __future__ import annotations

from typing import Any

from mtprof_nb.analysis.summary import coverage_notes
from mtprof_nb.model.trace import Trace
from mtprof_nb.views.escaped_text import hover

Figure = Any
Plotly = dict[str, Any]

_TITLE_PIXELS = 22


def figure(trace: Trace, drawn: list[Plotly], layout: Plotly) -> Figure:
    """The figure of `drawn`. Where the recording was full before the program ended, its title tells the part."""
    import plotly.graph_objects as go

    if notes := coverage_notes(trace):
        text = notes[0] if len(notes) == 1 else f"{len(notes)} processes were recorded in part: see summary().notes."
        place = {"x": 0, "xref": "paper", "y": 1, "yref": "container", "yanchor": "top", "pad": {"t": 4}}
        title = {"text": hover(text, 200), "font": {"size": 12}, **place}
        margin = {**layout["margin"], "t": layout["margin"]["t"] + _TITLE_PIXELS}
        height = {"height": layout["height"] + _TITLE_PIXELS} if "height" in layout else {}
        layout = {**layout, "title": title, "margin": margin, **height}
    return go.Figure(data=drawn, layout=layout)
