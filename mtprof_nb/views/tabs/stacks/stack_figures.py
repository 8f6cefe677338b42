"""Stacks as plotly figures: the slices that the panel draws, as an icicle or a sunburst."""

from __future__ import annotations

from typing import Any

from mtprof_nb.analysis import units
from mtprof_nb.model.trace import Trace
from mtprof_nb.views.escaped_text import hover
from mtprof_nb.views.figure import Figure, figure
from mtprof_nb.views.scene import Answer
from mtprof_nb.views.tabs.stacks.stacks_tab import FILLS, stack_chart

_SHAPES: dict[str, dict[str, Any]] = {
    "sunburst": {"maxdepth": 7, "insidetextorientation": "auto"},
    "icicle": {"maxdepth": 16, "tiling": {"orientation": "v", "pad": 1}, "pathbar": {"visible": False}},
}


def sunburst(trace: Trace, metric: str = "self", fold_libraries: bool = True) -> Figure:
    """Stacks from the middle outwards as a plotly figure; `metric` is self, count, python, memory or device."""
    return _figure(trace, metric, "sunburst", fold_libraries)


def icicle(trace: Trace, metric: str = "self", fold_libraries: bool = True) -> Figure:
    """Stacks from the top down as a plotly figure; `metric` is self, count, python, memory or device."""
    return _figure(trace, metric, "icicle", fold_libraries)


def _figure(trace: Trace, metric: str, shape: str, fold_libraries: bool) -> Figure:
    chart = stack_chart(trace, False, fold_libraries).chart(metric)
    slices = chart["slices"]
    inks = [FILLS[fill].ink for fill in slices["fill"]]
    drawn = {
        "type": shape,
        "ids": [str(position) for position in range(len(inks))],
        "parents": ["" if position < 0 else str(position) for position in slices["parent"]],
        "labels": [hover(label) for label in slices["label"]],
        "values": slices["total"],
        "branchvalues": "total",
        "sort": True,
        "marker": {"colors": [FILLS[fill].colour for fill in slices["fill"]], "line": {"width": 1}},
        # plotly uses the outside font for the root.
        "insidetextfont": {"color": inks},
        "outsidetextfont": {"color": inks},
        "leaf": {"opacity": 1},
        "hovertext": [_hover(chart, position) for position in range(len(inks))],
        "hoverinfo": "text",
        "textinfo": "label",
        **_SHAPES[shape],
    }
    layout = {"margin": {"l": 4, "r": 4, "t": 4, "b": 4}, "uniformtext": {"minsize": 9, "mode": "hide"}}
    return figure(trace, [drawn], layout)


def _hover(chart: Answer, position: int) -> str:
    slices, write = chart["slices"], units.WRITERS[chart["unit"]]
    total, own, folded = (slices[key][position] for key in ("total", "own", "folded"))
    name = units.plural(folded, "small slice") if folded else hover(slices["full"][position])
    share = units.share(total, slices["total"][0])
    lines = [f"<b>{name}</b>", f"{write(total)} {chart['title']}, {share} of all"]
    if 0 < own < total:
        lines.append(f"{write(own)} of it its own")
    if position == 0:
        lines += [f"called by {hover(caller)}" for caller in chart["called_by"]]
    return "<br>".join(lines)
