"""The picture of a timeline: blocks in lanes, with phases and names, at the level of detail of a window."""

from __future__ import annotations

import html
from typing import Any

import numpy as np

from mtprof_nb.analysis.families import FAMILIES, families
from mtprof_nb.analysis.lanes import Lanes, lanes
from mtprof_nb.analysis.lod import LIMIT, Blocks, Levels, Parts
from mtprof_nb.model.trace import Bool, Int32, Int64, Trace
from mtprof_nb.views.charts import ribbon
from mtprof_nb.views.charts.hovers import Hovers
from mtprof_nb.views.charts.ribbon import PhaseRibbon
from mtprof_nb.views.escaped_text import fitted, hover, short_name
from mtprof_nb.views.units import number
from mtprof_nb.views.weak_trace import WeakTraceHolder

Picture = dict[str, Any]

ROW_PIXELS = 18
#: Margins of the rows: lane titles on the left, the time axis below, step labels above.
MARGIN = {"l": 92, "r": 12, "t": 20, "b": 34}
_ROW_HEIGHT = 0.88
_LANE_GAP = 0.7
#: How much of its colour an event keeps while others are selected.
DIMMED = 0.16
#: The most families that are drawn apart in a block of more than a few events.
_MOST_PARTS, _FEW_EVENTS = 4, 8
_CHARACTER_PIXELS = 6.4
_MOST_STEP_LINES = 60
_STEP_LABEL_PIXELS = 72


class Timeline(WeakTraceHolder):
    """One trace arranged for drawing. `python` adds Python frames, if they were recorded."""

    def __init__(self, trace: Trace, python: bool = False) -> None:
        super().__init__(trace)
        self.lanes: Lanes = lanes(trace, python)
        self.levels = Levels(self.lanes.row, trace.start_ns, trace.duration_ns)
        self.family = families(trace)
        self._ribbon = PhaseRibbon(trace, self.lanes)
        self._y_of_row, self.lane_tops, self.height = self._stacked_lanes()
        self._steps = _step_starts(trace)
        # Python frames start before a recording and end after it.
        drawn = self.lanes.row >= 0
        last = int(trace.end_ns[drawn].max(initial=trace.ended_ns))
        first = int(trace.start_ns[drawn].min(initial=trace.began_ns or last))
        #: The window of all drawn events.
        self.whole_ns = (first, max(last, first + 1))
        self._hover = Hovers(trace, first)

    @property
    def pixels_high(self) -> int:
        """The height of all rows with the margins."""
        return round(self.height * ROW_PIXELS) + MARGIN["t"] + MARGIN["b"]

    def seconds(self, ns: Int64) -> list[float]:
        """Trace times on the axis: seconds since the recording began."""
        since: list[float] = ((ns - self.whole_ns[0]) / 1e9).tolist()
        return since

    def picture(
        self,
        begin_ns: int,
        end_ns: int,
        pixels: int = 1_000,
        chosen: Bool | None = None,
        window: tuple[int, int] | None = None,
        most: int = LIMIT,
    ) -> Picture:
        """The plotly figure from `begin_ns` to `end_ns`, as plain lists, and its `blocks`.

        Events outside the mask `chosen` are dimmed. `window` is the part that is visible at first. There are at most
        `most` bars, or one a row where there are more rows.
        """
        blocks, parts = self._divided(begin_ns, end_ns, pixels, most)
        lit = np.ones(len(blocks), np.bool_) if chosen is None else self.levels.held(blocks, chosen) > 0
        scale = pixels / max(end_ns - begin_ns, 1)
        visible = window or (begin_ns, end_ns)
        return {
            "data": [
                *self._ribbon.traces((begin_ns, end_ns), visible, scale, self.lane_tops, self.seconds),
                self._bars(blocks, parts, lit),
                self._ticks(blocks, lit, scale),
                self._labels(blocks, lit, visible, scale),
            ],
            "layout": self._layout(*visible, scale),
            "blocks": blocks,
        }

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
            y += ribbon.ROOM if self._ribbon.shown and lane.thread >= 0 else 0.0
            rows.extend(y + 0.5 + row for row in range(lane.rows))
            y += lane.rows + _LANE_GAP
        return rows, tops, max(y - _LANE_GAP, 1.0)

    def row_y(self, row: Int32) -> list[float]:
        """The middle of each row, in rows from the top."""
        return np.array(self._y_of_row)[row].tolist() if len(row) else []

    def _bars(self, blocks: Blocks, parts: Parts, lit: Bool) -> dict[str, Any]:
        """Bars: an event fills its row; in a block of many, the height of a family is its share of the block's extent.

        So an area is a time at any level of detail.
        """
        extent = np.maximum(blocks.end_ns - blocks.start_ns, 1)
        several = blocks.count > 1
        height = np.where(several[parts.block], parts.time_ns / extent[parts.block], 1.0) * _ROW_HEIGHT
        below = np.cumsum(height)
        first = np.searchsorted(parts.block, np.arange(len(blocks)))
        below -= np.append(0.0, below)[first][parts.block] + height
        middle = np.array(self.row_y(blocks.row)) if len(blocks) else np.empty(0)
        return {
            "type": "bar",
            "name": "events",
            "orientation": "h",
            "base": self.seconds(blocks.start_ns[parts.block]),
            "x": ((blocks.end_ns - blocks.start_ns)[parts.block] / 1e9).tolist(),
            "y": (middle[parts.block] + _ROW_HEIGHT / 2 - below - height / 2).round(4).tolist(),
            "width": height.round(4).tolist(),
            "marker": {
                "color": [FAMILIES[code].colour for code in parts.code.tolist()],
                "opacity": np.where(lit, 1.0, DIMMED)[parts.block].tolist(),
                "line": {"width": 0},
            },
            "customdata": np.stack([parts.event, self.trace.name[parts.event]], axis=1).tolist(),
            "hovertext": self._hovers(blocks, parts),
            "hoverinfo": "text",
        }

    def _hovers(self, blocks: Blocks, parts: Parts) -> list[str]:
        write = self._hover
        whole = [
            write.merged(*block) if block[0] > 1 else ""
            for block in zip(
                blocks.count.tolist(),
                blocks.time_ns.tolist(),
                (blocks.end_ns - blocks.start_ns).tolist(),
                strict=True,
            )
        ]
        columns = (parts.block, parts.code, parts.count, parts.time_ns, parts.event)
        return [
            f"{whole[block]}<br>{write.part(FAMILIES[code].title, count, time_ns, event)}"
            if whole[block]
            else write.event(event)
            for block, code, count, time_ns, event in zip(*(column.tolist() for column in columns), strict=True)
        ]

    def _ticks(self, blocks: Blocks, lit: Bool, scale: float) -> dict[str, Any]:
        """Ticks at blocks that are narrower than a pixel; the blocks keep their true width."""
        narrow = np.flatnonzero(((blocks.end_ns - blocks.start_ns) * scale < 1) & lit)
        family = self.family[blocks.event[narrow]]
        return {
            "type": "scatter",
            "name": "shorter than a pixel",
            "mode": "markers",
            "x": self.seconds(blocks.start_ns[narrow]),
            "y": self.row_y(blocks.row[narrow]),
            "marker": {
                "symbol": "line-ns",
                "size": 11,
                "line": {"width": 1, "color": [FAMILIES[code].colour for code in family.tolist()]},
            },
            "hoverinfo": "skip",
        }

    def _labels(self, blocks: Blocks, lit: Bool, window: tuple[int, int], scale: float) -> dict[str, Any]:
        """Names in the middle of the visible part of each block that is wide enough."""
        left, right = np.maximum(blocks.start_ns, window[0]), np.minimum(blocks.end_ns, window[1])
        room = ((right - left) * scale - 6) / _CHARACTER_PIXELS
        wide = np.flatnonzero((room >= 1) & lit & (blocks.count == 1))
        names = [short_name(self.trace.names[name]) for name in self.trace.name[blocks.event[wide]].tolist()]
        texts = [fitted(name, int(space)) for name, space in zip(names, room[wide].tolist(), strict=True)]
        wide = wide[[bool(text) for text in texts]]
        family = self.family[blocks.event[wide]].tolist()
        return {
            "type": "scatter",
            "name": "names",
            "mode": "text",
            "x": self.seconds((left + (right - left) // 2)[wide]),
            "y": self.row_y(blocks.row[wide]),
            "text": [html.escape(text, quote=False) for text in texts if text],
            "textfont": {"size": 11, "color": [FAMILIES[code].ink for code in family]},
            "hoverinfo": "skip",
        }

    def _layout(self, begin_ns: int, end_ns: int, scale: float) -> dict[str, Any]:
        titled = list(zip(self.lanes.lanes, self.lane_tops, strict=True))
        bottoms = [*(y - _LANE_GAP for y in self.lane_tops[1:]), self.height][: len(titled)]
        return {
            "barmode": "overlay",
            "bargap": 0,
            "showlegend": False,
            "hovermode": "closest",
            "dragmode": "zoom",
            "height": self.pixels_high,
            "margin": dict(MARGIN),
            "xaxis": time_axis(*self.seconds(np.array([begin_ns, end_ns, self.whole_ns[1]]))),
            "yaxis": {
                "range": [self.height, 0],
                "fixedrange": True,
                "showgrid": False,
                "zeroline": False,
                "tickvals": [(top + bottom) / 2 for (_, top), bottom in zip(titled, bottoms, strict=True)],
                "ticktext": [hover(fitted(lane.title, 13)) for lane, _ in titled],
            },
            **self._decoration(begin_ns, end_ns, bottoms, scale),
        }

    def _decoration(self, begin_ns: int, end_ns: int, bottoms: list[float], scale: float) -> dict[str, Any]:
        """Lines between lanes and at the starts of steps, and step labels."""
        line = {"color": "rgba(138,145,153,0.35)", "width": 1}
        across = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": "y", "layer": "below", "line": line}
        shapes = [{**across, "y0": y + _LANE_GAP / 2, "y1": y + _LANE_GAP / 2} for y in bottoms[:-1]]
        visible = [(step, at) for step, at in self._steps if begin_ns <= at < end_ns]
        if len(self._steps) < 2 or len(visible) > _MOST_STEP_LINES:
            return {"shapes": shapes, "annotations": []}
        down = {"type": "line", "xref": "x", "yref": "paper", "y0": 0, "y1": 1, "layer": "below"}
        starts = self.seconds(np.array([at for _, at in visible], np.int64))
        shapes += [{**down, "x0": x, "x1": x, "line": {**line, "dash": "dot"}} for x in starts]
        room = max(int((end_ns - begin_ns) * scale / _STEP_LABEL_PIXELS), 1)
        stride = max(-(-len(visible) // room), 1)
        label = {
            "yref": "paper",
            "y": 1,
            "yanchor": "bottom",
            "xanchor": "left",
            "showarrow": False,
            "font": {"size": 10},
        }
        annotations = [
            {**label, "x": x, "text": f"step {number(step)}"}
            for (step, at), x in list(zip(visible, starts, strict=True))[::stride]
            # At the right edge a label would be cut.
            if end_ns - at > (end_ns - begin_ns) / 20
        ]
        return {"shapes": shapes, "annotations": annotations}


def time_axis(begin: float, end: float, whole: float) -> dict[str, Any]:
    """An axis of seconds since the recording began, from `begin` to `end`, with zoom up to `whole`."""
    window = {"range": [begin, end], "minallowed": 0, "maxallowed": whole}
    return {**window, "tickformat": "~s", "ticksuffix": "s", "zeroline": False}


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
    """Each recorded step, and the start of its first event."""
    steps, first = np.unique(trace.step, return_index=True)
    return list(zip(steps.tolist(), trace.start_ns[first].tolist(), strict=True))
