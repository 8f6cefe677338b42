"""A timeline: blocks of events in lanes, with phases, at the level of detail of a window."""

from __future__ import annotations

import numpy as np

from mtprof_nb.analysis.families import FAMILIES, families
from mtprof_nb.analysis.lanes import Lanes, lanes
from mtprof_nb.analysis.lod import LIMIT, Blocks, Levels, Parts
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.analysis.summary import marked_steps
from mtprof_nb.model.trace import Bool, Int32, Trace
from mtprof_nb.views.escaped_text import shown
from mtprof_nb.views.scene import Answer
from mtprof_nb.views.tabs.timeline import ribbon
from mtprof_nb.views.tabs.timeline.event_facts import event_facts, texts_of
from mtprof_nb.views.tabs.timeline.ribbon import IdleRibbon, PhaseRibbon
from mtprof_nb.views.weak_trace import WeakTraceHolder

ROW_PIXELS = 18
_LANE_GAP = 0.7
#: The most families that are drawn apart in a block of more than a few events.
_MOST_PARTS, _FEW_EVENTS = 4, 8
_MOST_STEPS = 60
_MOST_GAPS = 600


class Timeline(WeakTraceHolder):
    """One trace arranged for drawing. `python` adds Python frames, if they were recorded."""

    def __init__(self, trace: Trace, python: bool = False) -> None:
        super().__init__(trace)
        self.lanes: Lanes = lanes(trace, python)
        self.levels = Levels(self.lanes.row, trace.start_ns, trace.duration_ns)
        self.family = families(trace)
        self._ribbon = PhaseRibbon(trace, self.lanes)
        self._idle = IdleRibbon(trace, self.lanes)
        self._row_tops, self.lane_tops, self.height = self._stacked_lanes()
        self._steps = _step_starts(trace)
        # Python frames start before a recording and end after it.
        drawn = self.lanes.row >= 0
        last = int(trace.end_ns[drawn].max(initial=trace.ended_ns))
        first = int(trace.start_ns[drawn].min(initial=trace.began_ns or last))
        #: The window of all drawn events.
        self.whole_ns = (first, max(last, first + 1))

    def window(
        self,
        begin_ns: int,
        end_ns: int,
        pixels: int = 1_000,
        chosen: Bool | None = None,
        most: int = LIMIT,
        steps: int = _MOST_STEPS,
        gaps: int = _MOST_GAPS,
        origin_ns: int | None = None,
    ) -> Answer:
        """Columns to draw from `begin_ns` to `end_ns`; all times in them are since `origin_ns`, or since the beginning.

        A block has the bars of its families, one above the other. Blocks without events in the mask `chosen` are not
        lit. There are at most `most` bars, or one a row where there are more rows; no steps if there are more than
        `steps`; and at most `gaps` blocks of gaps.
        """
        origin = self.whole_ns[0] if origin_ns is None else origin_ns
        blocks, parts = self._divided(begin_ns, end_ns, pixels, most)
        bars = event_facts(self.trace, parts.event)
        return {
            "drawn_ns": [begin_ns - origin, end_ns - origin],
            "pixel_ns": max(end_ns - begin_ns, 1) / pixels,
            "merged_ns": blocks.merged_below_ns,
            "blocks": {
                "row": blocks.row.tolist(),
                "start_ns": (blocks.start_ns - origin).tolist(),
                "length_ns": (blocks.end_ns - blocks.start_ns).tolist(),
                "count": blocks.count.tolist(),
                "time_ns": blocks.time_ns.tolist(),
                "lit": None if chosen is None else (self.levels.held(blocks, chosen) > 0).tolist(),
            },
            "bars": {
                "block": parts.block.tolist(),
                "family": parts.code.tolist(),
                "count": parts.count.tolist(),
                "time_ns": parts.time_ns.tolist(),
                **bars,
            },
            "texts": texts_of(self.trace, [*bars["name"], *bars["op"]], bars["shape"], bars["line"]),
            "phases": self._ribbon.window(begin_ns, end_ns, pixels, origin),
            "gaps": self._idle.window(begin_ns, end_ns, pixels, origin, gaps),
            "steps": self._visible_steps(begin_ns, end_ns, steps, origin),
        }

    def lane_rows(self) -> list[Answer]:
        """The lanes from top to bottom, in rows: where each begins, its rows without the phases above, and its end."""
        return [
            {
                "title": shown(lane.title),
                "top": top,
                "bottom": self._row_tops[lane.first_row] + lane.rows,
                "rows": lane.rows,
                "rows_top": self._row_tops[lane.first_row],
            }
            for lane, top in zip(self.lanes.lanes, self.lane_tops, strict=True)
        ]

    def row_y(self, row: Int32) -> list[float]:
        """The middle of each row, in rows from the top."""
        return (np.array(self._row_tops)[row] + 0.5).tolist() if len(row) else []

    def _divided(self, begin_ns: int, end_ns: int, pixels: int, most: int) -> tuple[Blocks, Parts]:
        """The blocks of a window and their drawn parts, at most `most`, or one for each row."""
        limit = most
        while True:
            blocks = self.levels.window(begin_ns, end_ns, limit, pixels)
            parts = drawn_parts(blocks, self.levels.parts(blocks, self.family, len(FAMILIES)))
            if len(parts) <= most or limit <= self.lanes.rows:
                return blocks, parts
            limit = max(min(limit, len(blocks)) * most // (len(parts) + 1), self.lanes.rows)

    def _stacked_lanes(self) -> tuple[list[float], list[float], float]:
        rows: list[float] = []
        tops: list[float] = []
        y = 0.0
        for lane in self.lanes.lanes:
            tops.append(y)
            has_ribbon = (self._ribbon.shown and lane.thread >= 0) or lane.device >= 0
            y += ribbon.ROOM if has_ribbon else 0.0
            rows.extend(y + row for row in range(lane.rows))
            y += lane.rows + _LANE_GAP
        return rows, tops, max(y - _LANE_GAP, 1.0)

    def _visible_steps(self, begin_ns: int, end_ns: int, most: int, origin_ns: int) -> Answer:
        """Number and start of the steps in a window; none where there is one step in all, or too many to draw."""
        visible = [(step, at) for step, at in self._steps if begin_ns <= at < end_ns]
        if len(self._steps) < 2 or len(visible) > most:
            visible = []
        return {"number": [step for step, _ in visible], "start_ns": [at - origin_ns for _, at in visible]}


#: The trace's `Timeline`, made once.
arranged = once_a_trace(Timeline)


def drawn_parts(blocks: Blocks, parts: Parts) -> Parts:
    """The largest parts of a block of many events; a block of few events whole, as its largest part."""
    largest_first = np.lexsort((-parts.time_ns, parts.block))
    first = np.searchsorted(parts.block[largest_first], parts.block[largest_first])
    rank = np.arange(len(parts)) - first
    most = np.where(blocks.count > _FEW_EVENTS, _MOST_PARTS, 1)[parts.block[largest_first]]
    kept = np.sort(largest_first[rank < most])
    few = blocks.count[parts.block[kept]] <= _FEW_EVENTS
    whole = parts.block[kept]
    return Parts(
        whole,
        parts.code[kept],
        np.where(few, blocks.count[whole], parts.count[kept]),
        np.where(few, blocks.time_ns[whole], parts.time_ns[kept]),
        parts.event[kept],
    )


def _step_starts(trace: Trace) -> list[tuple[int, int]]:
    """Each step with ops, and the start of its first event."""
    marked = set(marked_steps(trace))
    steps, first = np.unique(trace.step, return_index=True)
    starts_ns = trace.start_ns[first].tolist()
    return [(step, ns) for step, ns in zip(steps.tolist(), starts_ns, strict=True) if step in marked]
