"""The timeline: a lane for each thread, nested by depth, at a level of detail that any window can draw."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtprof_nb.analysis.families import FAMILIES
from mtprof_nb.analysis.lod import LIMIT
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.trace import Bool, Trace
from mtprof_nb.views.charts.ribbon import outermost_ops
from mtprof_nb.views.charts.timeline_picture import DIMMED, Timeline
from mtprof_nb.views.escaped_text import shown
from mtprof_nb.views.scene import Answer, Question, Scene
from mtprof_nb.views.selection import selected_events

Figure = Any

#: How much more than the visible window is drawn on either side, so that panning does not run into the blank.
_BEYOND = 0.25
_OVERVIEW_BINS = 240
#: A notebook saves the first picture; a live one asks at once for all that its width can show.
_FIRST_BARS = 800

#: The trace's `Timeline`, made once.
arranged = once_a_trace(Timeline)


def timeline(trace: Trace, python: bool = False) -> Figure:
    """The whole trace as a plotly figure of at most 2,000 blocks; `python` adds the Python frames."""
    import plotly.graph_objects as go

    chart = arranged(trace, python)
    picture = chart.picture(*chart.whole_ns)
    return go.Figure(data=picture["data"], layout=picture["layout"])


def busy_shares(trace: Trace, begin_ns: int, end_ns: int, bins: int = _OVERVIEW_BINS) -> list[float]:
    """For equal parts of a window, how much of each the busiest thread spent in ops."""
    # Since the window's begin: a float cannot tell neighbouring nanoseconds of Unix time apart.
    edges = np.linspace(0, end_ns - begin_ns, bins + 1)
    outermost = outermost_ops(trace)
    busiest = np.zeros(bins)
    for thread in np.unique(trace.track[outermost]).tolist():
        own = outermost[trace.track[outermost] == thread]
        moments = np.column_stack([trace.start_ns[own], trace.end_ns[own]]).ravel() - begin_ns
        spent = np.cumsum(np.column_stack([np.zeros(len(own)), trace.duration_ns[own]]).ravel())
        # Starts and ends take turns, so that the time spent by any moment lies on straight lines between them.
        by_edge = np.interp(edges, moments, spent, left=0.0)
        busiest = np.maximum(busiest, np.diff(by_edge) / np.diff(edges))
    return [round(share, 3) for share in np.minimum(busiest, 1).tolist()]


class TimelineTab:
    """Answers the windows that the page zooms to."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    @property
    def _chart(self) -> Timeline:
        return arranged(self._scene.trace, self._scene.show_all)

    def first(self) -> Answer:
        """The whole trace."""
        if not len(self._scene.trace):
            return {"empty": "Nothing was recorded, so there is nothing to see in time."}
        begin, end = self._chart.whole_ns
        families = sorted(set(self._chart.family.tolist()))
        return {
            **self._drawn(begin, end, 1_000, most=_FIRST_BARS),
            "whole_s": (end - begin) / 1e9,
            "busy": busy_shares(self._scene.trace, begin, end),
            "lanes": [shown(lane.title) for lane in self._chart.lanes.lanes],
            "dimmed": DIMMED,
            "legend": [FAMILIES[code]._asdict() for code in families],
        }

    def answer(self, question: Question) -> Answer:
        """A window, in nanoseconds since the first event, drawn for so many pixels, with what is selected lit."""
        first, last = self._chart.whole_ns
        begin, end = first + int(question["begin_ns"]), first + int(question["end_ns"])
        pixels = min(max(int(question["pixels"]), 100), 4_000)
        beyond = round((end - begin) * _BEYOND)
        wider = max(begin - beyond, first), min(end + beyond, last)
        wider_pixels = round(pixels * (wider[1] - wider[0]) / max(end - begin, 1))
        return self._drawn(*wider, wider_pixels, (begin, end), chosen=selected_events(self._scene, question))

    def _drawn(
        self,
        begin: int,
        end: int,
        pixels: int,
        window: tuple[int, int] | None = None,
        most: int = LIMIT,
        chosen: Bool | None = None,
    ) -> Answer:
        picture = self._chart.picture(begin, end, pixels, chosen, window, most)
        blocks = picture.pop("blocks")
        return {
            "picture": picture,
            "drawn": len(blocks),
            "held": int(blocks.count.sum()),
            "pixels_per_s": pixels / (end - begin) * 1e9,
            "drawn_s": self._chart.seconds(np.array([begin, end])),
        }
