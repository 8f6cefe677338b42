"""Allocated bytes over time as a plotly figure: the curves that the panel draws."""

from __future__ import annotations

import numpy as np

from mtprof_nb.analysis import units
from mtprof_nb.analysis.families import FAMILIES, REDUCTION
from mtprof_nb.model.trace import Trace
from mtprof_nb.views.escaped_text import hover, shown
from mtprof_nb.views.figure import Figure, figure
from mtprof_nb.views.scene import Answer
from mtprof_nb.views.tabs.memory.memory_tab import memory_chart, no_curve
from mtprof_nb.views.tabs.timeline.timeline_figure import time_axis

_TICKS = 5
#: Colours of the devices, in their order: matrix blue first, then those that differ most from it.
CURVES = tuple(FAMILIES[code].colour for code in (0, 1, 3, 2, 6))


def memory(trace: Trace) -> Figure:
    """Allocated bytes over time as a plotly figure; `ValueError` where none were recorded."""
    chart = memory_chart(trace)
    if not chart.curves:
        raise ValueError(no_curve(trace))
    drawn = chart.window(*chart.whole_ns)
    whole_ns = chart.whole_ns[1] - chart.whole_ns[0]
    colours = (CURVES[number % len(CURVES)] for number in range(len(drawn["curves"])))
    lines = [
        _line(curve, drawn["texts"], whole_ns, colour) for curve, colour in zip(drawn["curves"], colours, strict=True)
    ]
    peaks = [_peak(curve, drawn["texts"], whole_ns) for curve in drawn["curves"]]
    return figure(trace, [*lines, *peaks], _layout(drawn["curves"], whole_ns))


def _line(curve: Answer, texts: Answer, whole_ns: int, colour: str) -> Answer:
    columns = (curve[key] for key in ("time_ns", "nbytes", "change", "name", "line"))
    hovers = [_hover(curve["title"], texts, *point) for point in zip(*columns, strict=True)]
    # The last bytes are held until the end of the recording.
    time_ns = [*curve["time_ns"], max(whole_ns, curve["time_ns"][-1])]
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return {
        "type": "scatter",
        "mode": "lines",
        "name": hover(curve["title"]),
        "x": (np.array(time_ns) / 1e9).tolist(),
        "y": [*curve["nbytes"], curve["nbytes"][-1]],
        "line": {"shape": "hv", "width": 1.5, "color": colour},
        "fill": "tozeroy",
        "fillcolor": f"rgba({red},{green},{blue},0.2)",
        "hovertext": [*hovers, hovers[-1]],
        "hoverinfo": "text",
    }


def _peak(curve: Answer, texts: Answer, whole_ns: int) -> Answer:
    peak = curve["peak"]
    name, line = texts["names"].get(peak["name"]), texts["lines"].get(peak["line"])
    cause = (f" by {hover(shown(name, 40))}" if name else "") + (f", {hover(shown(line, 40))}" if line else "")
    return {
        "type": "scatter",
        "mode": "markers+text",
        "name": f"peak of {hover(curve['title'])}",
        "x": [peak["time_ns"] / 1e9],
        "y": [peak["nbytes"]],
        "text": [f"peak {units.nbytes(peak['nbytes'])}{cause}"],
        "textposition": "top left" if peak["time_ns"] > whole_ns / 2 else "top right",
        "marker": {"size": 9, "symbol": "diamond", "color": FAMILIES[REDUCTION].colour},
        "hoverinfo": "skip",
        "showlegend": False,
        "cliponaxis": False,
    }


def _hover(title: str, texts: Answer, time_ns: int, nbytes: int, change: int, name: int, line: int) -> str:
    by = f" by {hover(texts['names'][name])}" if name >= 0 else ""
    lines = [
        f"<b>{units.nbytes(nbytes)}</b> on {hover(title)}, at {units.duration(time_ns)}",
        f"{'+' if change > 0 else ''}{units.nbytes(change)}{by}" if change else "",
        hover(texts["lines"].get(line, "")),
    ]
    return "<br>".join(filter(None, lines))


def _layout(curves: list[Answer], whole_ns: int) -> Answer:
    peak = max(curve["peak"]["nbytes"] for curve in curves)
    values = byte_ticks(peak)
    return {
        "showlegend": len(curves) > 1,
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "hovermode": "closest",
        "margin": {"l": 72, "r": 14, "t": 22, "b": 34},
        "xaxis": time_axis(0, whole_ns / 1e9),
        "yaxis": {
            "range": [0, peak * 1.18 or 1],
            "fixedrange": True,
            "zeroline": False,
            "tickvals": values,
            "ticktext": [units.nbytes(value) for value in values],
        },
    }


def byte_ticks(peak: int) -> list[int]:
    """Round numbers of bytes from 0 to `peak`, a few of them."""
    step = 1 << (max(peak // _TICKS, 1) - 1).bit_length()
    return list(range(0, peak + 1, step))
