"""The timeline tab: a lane for each thread, rows by depth, at a level of detail for any window."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mtprof_nb.analysis.devices.recorded_devices import device_work
from mtprof_nb.analysis.families import FAMILIES
from mtprof_nb.analysis.summary import has_steps
from mtprof_nb.model.intervals import runs_of_equal
from mtprof_nb.model.trace import Trace
from mtprof_nb.views.device_bars import IDLE_KINDS, TimeKind
from mtprof_nb.views.scene import MOST_SENT, Answer, Question, Tab
from mtprof_nb.views.selection import selected_events
from mtprof_nb.views.tabs.timeline.launches import all_launches, launches_of, with_launches
from mtprof_nb.views.tabs.timeline.ribbon import drawn_collections, outermost_ops_on_lanes
from mtprof_nb.views.tabs.timeline.timeline_blocks import Timeline, arranged

#: Part of the visible window that is also drawn on either side, for panning.
_BEYOND = 0.25
_OVERVIEW_BINS = 240
#: The most bars of the first picture, which a notebook saves; a live panel asks for more at once.
_FIRST_BARS = 800
#: The most garbage collections that are marked: the longest ones.
_MOST_COLLECTIONS = 400
#: The most steps, gaps and launches of a recording that is sent whole.
_WHOLE_STEPS, _WHOLE_GAPS, _WHOLE_LAUNCHES = 10_000, 20_000, 50_000


def busy_shares(trace: Trace, begin_ns: int, end_ns: int, bins: int = _OVERVIEW_BINS) -> list[float]:
    """For equal parts of a window the share that the busiest thread spent in ops."""
    busiest = np.zeros(bins)
    for busy in busy_by_thread(trace, begin_ns, end_ns, bins).values():
        busiest = np.maximum(busiest, busy)
    return [round(share, 3) for share in busiest.tolist()]


def busy_by_thread(trace: Trace, begin_ns: int, end_ns: int, bins: int) -> dict[int, npt.NDArray[np.float64]]:
    """For each thread with ops, as a position in `Trace.tracks`, its share in ops of equal parts of a window."""
    # Relative to the window: a float cannot represent nanoseconds of Unix time.
    edges = np.linspace(0, end_ns - begin_ns, bins + 1)
    outermost = outermost_ops_on_lanes(trace)
    busy = {}
    for run in runs_of_equal(trace.track[outermost]):
        own = outermost[run]
        moments = np.column_stack([trace.start_ns[own], trace.end_ns[own]]).ravel() - begin_ns
        spent = np.cumsum(np.column_stack([np.zeros(len(own)), trace.duration_ns[own]]).ravel())
        # Starts and ends alternate, so the time spent is linear between them.
        by_edge = np.interp(edges, moments, spent, left=0.0)
        busy[int(trace.track[own[0]])] = np.clip(np.diff(by_edge) / np.diff(edges), 0, 1)
    return busy


class TimelineTab(Tab):
    """Answers questions for the windows that the page zooms to."""

    @property
    def _chart(self) -> Timeline:
        return arranged(self._scene.trace, self._scene.show_all)

    def first(self) -> Answer:
        if not len(self._scene.trace):
            return {"empty": "Nothing was recorded, so there is no timeline."}
        begin, end = self._chart.whole_ns
        return {
            **self._chart.window(begin, end, most=_FIRST_BARS),
            "whole_ns": end - begin,
            "busy": busy_shares(self._scene.trace, begin, end),
            "lanes": self._chart.lane_rows(),
            "has_steps": has_steps(self._scene.trace),
            "families": [family._asdict() for family in FAMILIES],
            "legend": sorted(set(self._chart.family.tolist())),
            "causes": [{"title": kind.title, "colour": kind.colour} for kind in self._causes()],
            "collections": drawn_collections(self._scene.trace, self._chart.lanes, begin, _MOST_COLLECTIONS),
        }

    def answer(self, question: Question) -> Answer | None:
        """The `whole` of a recording that is not too long. For a longer one, `launches` of an event; and a
        `window`, in nanoseconds since the first event, for so many pixels, with the selection lit.
        """
        if question["ask"] == "whole":
            is_sent = question.get("coarse") or len(self._scene.trace) <= MOST_SENT
            return self._whole() if is_sent else None
        if question["ask"] == "launches":
            return launches_of(self._chart, int(question["event"]))
        if question["ask"] != "window":
            return super().answer(question)
        first, last = self._chart.whole_ns
        begin, end = first + int(question["begin_ns"]), first + int(question["end_ns"])
        pixels = min(max(int(question["pixels"]), 100), 4_000)
        beyond = round((end - begin) * _BEYOND)
        wider = max(begin - beyond, first), min(end + beyond, last)
        wider_pixels = round(pixels * (wider[1] - wider[0]) / max(end - begin, 1))
        chosen = selected_events(self._scene, question)
        lit = None if chosen is None else with_launches(self._scene.trace, chosen)
        return self._chart.window(*wider, wider_pixels, lit)

    def carried(self) -> list[Question]:
        return [{"ask": "whole"}]

    def _whole(self) -> Answer:
        """The finest level of detail that is sent, from which a page makes all windows."""
        begin, end = self._chart.whole_ns
        window = self._chart.window(begin, end, end - begin, most=MOST_SENT, steps=_WHOLE_STEPS, gaps=_WHOLE_GAPS)
        return {**window, "launches": all_launches(self._chart, _WHOLE_LAUNCHES)}

    def _causes(self) -> tuple[TimeKind, ...]:
        """The causes of idle time that there may be."""
        return IDLE_KINDS if device_work(self._scene.trace) else ()
