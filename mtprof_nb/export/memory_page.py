"""A page with a chart of memory over time. It needs no server, and shows names as text."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from mtprof_nb.analysis.devices.recorded_devices import Device
from mtprof_nb.analysis.memory.memory_categories import Category
from mtprof_nb.analysis.memory.memory_curve import memory_curve, peak, thinned
from mtprof_nb.model.trace import Int64, Trace

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

#: A screen cannot show more points than this.
_MOST_POINTS = 4_000
_LONGEST_NAME = 120
_COLORS = {
    Category.PARAMETER: "#2e7d32",
    Category.OPTIMIZER_STATE: "#c9971c",
    Category.INPUT: "#37474f",
    Category.TEMPORARY: "#8e6bbf",
    Category.ACTIVATION: "#d14a3d",
    Category.GRADIENT: "#2f5fb3",
    Category.AUTOGRAD_DETAIL: "#6f97d8",
    Category.UNKNOWN: "#9e9e9e",
}
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title></head>
<body style="margin:0">
{chart}
</body>
</html>
"""


def page(trace: Trace, device: Device, microseconds: Int64, held: Int64) -> str:
    """The page of what `device` held, by category, at each of the moments."""
    from plotly.io import to_html

    chart = to_html(
        _figure(trace, device, microseconds, held),
        include_plotlyjs=True,
        full_html=False,
        default_height="100vh",
        # No button that would send the chart to a server.
        config={"displaylogo": False, "modeBarButtonsToRemove": ["sendChartToCloud"]},
    )
    return _PAGE.format(title=_as_text(f"Memory of {device}: {trace.label}"), chart=chart)


def _figure(trace: Trace, device: Device, microseconds: Int64, held: Int64) -> Figure:
    from plotly.graph_objects import Figure, Scatter

    points = thinned(held.sum(axis=1), _MOST_POINTS)
    milliseconds = (microseconds[points] - microseconds[:1].max(initial=0)) / 1000
    figure = Figure(layout={"template": "plotly_white", "hovermode": "x unified"})
    for category in Category:
        if held[:, category].any():
            figure.add_trace(
                Scatter(
                    x=milliseconds,
                    y=held[points, category],
                    name=category.name.replace("_", " ").lower(),
                    stackgroup="held",
                    line={"shape": "hv", "width": 0},
                    fillcolor=_COLORS[category],
                    hovertemplate="%{y:.4s}B",
                )
            )
    figure.update_xaxes(title_text="time (ms)", hoverformat=".3f")
    figure.update_yaxes(title_text="held (bytes)", tickformat="~s", ticksuffix="B", rangemode="tozero")
    is_thinned = len(points) < len(held)
    note = f"showing {len(points):,} of {len(held):,} moments; every peak is kept" if is_thinned else ""
    figure.update_layout(title={"text": _title(trace, device), "subtitle": {"text": note}})
    return figure


def _title(trace: Trace, device: Device) -> str:
    top = peak(memory_curve(trace, device))
    title = f"Memory of {device}" + (f": {trace.label}" if trace.label else "")
    if top is None:
        return _as_text(f"{title}, nothing was allocated")
    where = f" in {trace.names[trace.name[top.event]]}" if top.event >= 0 else ""
    return _as_text(f"{title}, at most {top.nbytes:,} bytes{where}")


def _as_text(text: str) -> str:
    """`text` without markup and lone surrogates, cut if it is very long."""
    shown = text if len(text) <= _LONGEST_NAME * 2 else text[: _LONGEST_NAME * 2] + "…"
    return escape(shown.encode("utf-8", "replace").decode("utf-8"))
