"""A page with the memory of a device over time, by purpose. It needs no server, and shows names as text."""

from __future__ import annotations

from os import PathLike

import numpy as np

from mtprof_nb.analysis import units
from mtprof_nb.analysis.memory.memory_categories import Category
from mtprof_nb.analysis.memory.memory_curve import memory_curve, peak, thinned
from mtprof_nb.export.memory_timeline import MemoryTimeline, timeline_for
from mtprof_nb.model.trace import Int64, Trace
from mtprof_nb.tables.writers.as_html import escaped
from mtprof_nb.views.escaped_text import shown
from mtprof_nb.views.page import html_page
from mtprof_nb.views.page.html_page import PageTab, page_of
from mtprof_nb.views.scene import Answer, Scene, Tab
from mtprof_nb.views.strip import Figure, Strip

#: A screen cannot show more points than this.
_MOST_POINTS = 4_000
_LONGEST_NAME = 120
#: Titles and colours of the purposes.
_PURPOSES = {
    Category.PARAMETER: ("parameter", "#2e7d32"),
    Category.OPTIMIZER_STATE: ("optimizer state", "#c9971c"),
    Category.INPUT: ("input", "#546e7a"),
    Category.TEMPORARY: ("temporary", "#8e6bbf"),
    Category.ACTIVATION: ("activation", "#d14a3d"),
    Category.GRADIENT: ("gradient", "#2f5fb3"),
    Category.AUTOGRAD_DETAIL: ("autograd detail", "#6f97d8"),
    Category.UNKNOWN: ("unknown", "#9e9e9e"),
}


class PurposesTab(Tab):
    """Sends all that the page shows at once; it has no questions."""

    def __init__(self, scene: Scene, timeline: MemoryTimeline) -> None:
        super().__init__(scene)
        self._timeline = timeline

    def first(self) -> Answer:
        microseconds, held = self._timeline.sizes()
        if not held.any():
            return {"empty": f"Nothing was allocated on {self._timeline.device}."}
        points = thinned(held.sum(axis=1), _MOST_POINTS)
        time_ns = (microseconds[points] - microseconds[0]) * 1_000
        left_out = f"showing {len(points):,} of {len(held):,} moments; every peak is kept"
        return {
            "whole_ns": max(int(time_ns[-1]), 1),
            "time_ns": time_ns.tolist(),
            "purposes": [_purpose(category, held[points]) for category in Category if held[:, category].any()],
            "peak": int(held.sum(axis=1).max()),
            "note": left_out if len(points) < len(held) else "",
        }


def write(trace: Trace, path: str | PathLike[str], device: str | None = None) -> MemoryTimeline:
    """Write the page of what a device held, by purpose; errors are those of `timeline_for`."""
    scene, timeline = Scene(trace), timeline_for(trace, path, device)
    tabs = [PageTab("purposes", "Memory", PurposesTab(scene, timeline))]
    html_page.write(page_of(scene, tabs, _strip(trace, timeline), _without_scripts(trace, timeline)), path)
    return timeline


def _purpose(category: Category, held: Int64) -> Answer:
    title, colour = _PURPOSES[category]
    return {"title": title, "colour": colour, "nbytes": held[:, category].tolist()}


def _strip(trace: Trace, timeline: MemoryTimeline) -> Strip:
    top = peak(memory_curve(trace, timeline.device))
    title = f"Memory of {timeline.device}" + (f": {trace.label}" if trace.label else "")
    figures = [] if top is None else [Figure("peak", units.nbytes(top.nbytes), f"{top.nbytes:,} bytes")]
    if top is not None and top.event >= 0:
        figures.append(Figure("reached in", shown(trace.names[trace.name[top.event]], _LONGEST_NAME), "the op"))
    return Strip(shown(title, 2 * _LONGEST_NAME), tuple(figures), (), "", "", (), ())


def _without_scripts(trace: Trace, timeline: MemoryTimeline) -> str:
    """The bytes of each purpose at the peak."""
    strip = _strip(trace, timeline)
    _, held = timeline.sizes()
    at_peak = held[int(np.argmax(held.sum(axis=1)))] if len(held) else []
    rows = "".join(
        f"<tr><td>{_PURPOSES[category][0]}</td><td>{units.nbytes(int(count))}</td></tr>"
        for category, count in zip(Category, at_peak, strict=False)
        if count
    )
    return f"<b>{escaped(strip.title)}</b><p>{escaped(strip.line)}</p><table>{rows}</table>"
