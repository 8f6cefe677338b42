"""The timeline: a lane for each thread, nested by depth, at a level of detail that any window can draw."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from mtprof_nb.analysis.lanes import Lanes, lanes
from mtprof_nb.analysis.lod import Blocks, Levels
from mtprof_nb.analysis.nesting import nesting
from mtprof_nb.trace import OP, PHASES, Bool, Int8, Int32, Int64, Trace
from mtprof_nb.views.families import FAMILIES, families
from mtprof_nb.views.text import fitted, hover, short_name
from mtprof_nb.views.units import duration, number, plural

Figure = Any
Picture = dict[str, Any]

ROW_PIXELS = 18
#: Room beside the rows: lane titles on the left, the time axis below, step labels above.
MARGIN = {"l": 92, "r": 12, "t": 20, "b": 34}
_LANE_GAP = 0.7
_RIBBON = 0.75
_DIMMED = 0.16
_CHARACTER_PIXELS = 6.4
_NEUTRAL = "#8a9199"
_HATCH = {"forward": "", "backward": "/", "optimizer": "x", "other": "."}
_MOST_STEP_LINES = 60
_MOST_STEP_LABELS = 14


class Timeline:
    """One trace arranged for drawing. `python` adds the Python frames, where they were recorded."""

    def __init__(self, trace: Trace, python: bool = False) -> None:
        self.trace = trace
        self.lanes: Lanes = lanes(trace, python)
        self.levels = Levels(self.lanes.row, trace.start_ns, trace.duration_ns)
        self.family = families(trace)
        self._ribbons = _PhaseRuns(trace, self.lanes)
        self._y_of_row, self._y_of_lane, self.height = self._stacked_lanes()
        self._steps = _step_starts(trace)
        last = int(trace.end_ns.max(initial=trace.ended_ns))
        first = int(trace.start_ns.min(initial=trace.began_ns or last))
        #: The window that holds everything.
        self.whole_ns = (first, max(last, first + 1))

    @property
    def pixels_high(self) -> int:
        """Height that gives every row its room."""
        return round(self.height * ROW_PIXELS) + MARGIN["t"] + MARGIN["b"]

    def seconds(self, ns: Int64) -> list[float]:
        """Trace times on the axis: seconds since the recording began."""
        since: list[float] = ((ns - self.whole_ns[0]) / 1e9).tolist()
        return since

    def picture(self, begin_ns: int, end_ns: int, pixels: int = 1_000, chosen: Bool | None = None) -> Picture:
        """The plotly figure of a window, as plain lists; events outside the mask `chosen` are dimmed."""
        blocks = self.levels.window(begin_ns, end_ns, pixels=pixels)
        lit = np.ones(len(blocks), np.bool_) if chosen is None else self.levels.held(blocks, chosen) > 0
        scale = pixels / max(end_ns - begin_ns, 1)
        return {
            "data": [
                self._ribbon_bars(begin_ns, end_ns, pixels),
                self._bars(blocks, lit),
                self._ticks(blocks, lit, scale),
                self._labels(blocks, lit, (begin_ns, end_ns), scale),
            ],
            "layout": self._layout(begin_ns, end_ns),
        }

    def _stacked_lanes(self) -> tuple[list[float], list[float], float]:
        rows: list[float] = []
        tops: list[float] = []
        y = 0.0
        for lane in self.lanes.lanes:
            tops.append(y)
            y += _RIBBON if self._ribbons.shown and lane.thread >= 0 else 0.0
            rows.extend(y + 0.5 + row for row in range(lane.rows))
            y += lane.rows + _LANE_GAP
        return rows, tops, max(y - _LANE_GAP, 1.0)

    def _y(self, row: Int32) -> list[float]:
        return np.array(self._y_of_row)[row].tolist() if len(row) else []

    def _bars(self, blocks: Blocks, lit: Bool) -> dict[str, Any]:
        family = self.levels.dominant(blocks, self.family, len(FAMILIES))
        return {
            "type": "bar",
            "name": "events",
            "orientation": "h",
            "base": self.seconds(blocks.start_ns),
            "x": ((blocks.end_ns - blocks.start_ns) / 1e9).tolist(),
            "y": self._y(blocks.row),
            "width": 0.88,
            "marker": {
                "color": [FAMILIES[code].colour for code in family.tolist()],
                "opacity": np.where(lit, 1.0, _DIMMED).tolist(),
                "line": {"width": 0},
            },
            "customdata": np.stack([blocks.event, self.trace.name[blocks.event]], axis=1).tolist(),
            "hovertext": self._hovers(blocks, family),
            "hoverinfo": "text",
        }

    def _ticks(self, blocks: Blocks, lit: Bool, scale: float) -> dict[str, Any]:
        """Marks where a block too narrow for any pixel stands; the block itself keeps its true width."""
        narrow = np.flatnonzero(((blocks.end_ns - blocks.start_ns) * scale < 1) & lit)
        family = self.family[blocks.event[narrow]]
        return {
            "type": "scatter",
            "name": "shorter than a pixel",
            "mode": "markers",
            "x": self.seconds(blocks.start_ns[narrow]),
            "y": self._y(blocks.row[narrow]),
            "marker": {
                "symbol": "line-ns",
                "size": 11,
                "line": {"width": 1, "color": [FAMILIES[code].colour for code in family.tolist()]},
            },
            "hoverinfo": "skip",
        }

    def _labels(self, blocks: Blocks, lit: Bool, window: tuple[int, int], scale: float) -> dict[str, Any]:
        """Names in the middle of what is visible of each block that is wide enough."""
        left, right = np.maximum(blocks.start_ns, window[0]), np.minimum(blocks.end_ns, window[1])
        room = ((right - left) * scale - 6) / _CHARACTER_PIXELS
        wide = np.flatnonzero((room >= 2) & lit & (blocks.count == 1))
        names = [short_name(self.trace.names[name]) for name in self.trace.name[blocks.event[wide]].tolist()]
        texts = [fitted(name, int(space)) for name, space in zip(names, room[wide].tolist(), strict=True)]
        family = self.family[blocks.event[wide]].tolist()
        return {
            "type": "scatter",
            "name": "names",
            "mode": "text",
            "x": self.seconds((left + (right - left) // 2)[wide]),
            "y": self._y(blocks.row[wide]),
            "text": [hover(text) for text in texts],
            "textfont": {"size": 11, "color": [FAMILIES[code].ink for code in family]},
            "hoverinfo": "skip",
        }

    def _hovers(self, blocks: Blocks, family: Int8) -> list[str]:
        self_ns = nesting(self.trace).self_ns[blocks.event].tolist()
        columns = (blocks.event, blocks.count, blocks.time_ns, blocks.end_ns - blocks.start_ns, family)
        rows = zip(*(column.tolist() for column in columns), self_ns, strict=True)
        return [
            self._hover_event(event, own_ns)
            if count == 1
            else self._hover_merged(event, count, time_ns, extent_ns, FAMILIES[code].title)
            for event, count, time_ns, extent_ns, code, own_ns in rows
        ]

    def _hover_event(self, event: int, self_ns: int) -> str:
        trace = self.trace
        took = int(trace.duration_ns[event])
        own = f" (self {duration(self_ns)})" if self_ns != took else ""
        at = duration(int(trace.start_ns[event]) - self.whole_ns[0])
        lines = [
            f"<b>{hover(trace.names[trace.name[event]])}</b>",
            f"{duration(took)}{own}, at {at}",
            f"{PHASES[trace.phase[event]]}, step {trace.step[event]}",
        ]
        if trace.shape is not None and trace.shape[event] >= 0:
            lines.append(f"inputs {hover(shapes_text(trace.shapes[trace.shape[event]]))}")
        if trace.line is not None and trace.line[event] >= 0:
            file, line = trace.lines[trace.line[event]]
            lines.append(hover(f"{file}:{line}"))
        return "<br>".join(lines)

    def _hover_merged(self, event: int, count: int, time_ns: int, extent_ns: int, title: str) -> str:
        trace = self.trace
        longest = hover(trace.names[trace.name[event]])
        return "<br>".join(
            [
                f"<b>{plural(count, 'event')}</b>, {duration(time_ns)} in {duration(extent_ns)}",
                f"mostly {title}; longest {longest}, {duration(int(trace.duration_ns[event]))}",
                "zoom in to see them",
            ]
        )

    def _ribbon_bars(self, begin_ns: int, end_ns: int, pixels: int) -> dict[str, Any]:
        ribbons = self._ribbons
        blocks = ribbons.levels.window(begin_ns, end_ns, limit=240, pixels=pixels // 3)
        phase = ribbons.levels.dominant(blocks, ribbons.phase, len(PHASES)).tolist()
        wide = ((blocks.end_ns - blocks.start_ns) * pixels / max(end_ns - begin_ns, 1)) > 58
        tops = np.array(self._y_of_lane)
        return {
            "type": "bar",
            "name": "phases",
            "orientation": "h",
            "base": self.seconds(blocks.start_ns),
            "x": ((blocks.end_ns - blocks.start_ns) / 1e9).tolist(),
            "y": (tops[blocks.row] + 0.32).tolist() if len(blocks) else [],
            "width": 0.5,
            "marker": {
                "color": "rgba(138,145,153,0.18)",
                "pattern": {
                    "shape": [_HATCH[PHASES[code]] for code in phase],
                    "fgcolor": _NEUTRAL,
                    "size": 5,
                    "solidity": 0.25,
                    "fillmode": "overlay",
                },
                "line": {"width": 0},
            },
            "text": [PHASES[code] if room else "" for code, room in zip(phase, wide.tolist(), strict=True)],
            "textposition": "none",
            "hovertext": [
                f"<b>{PHASES[code]}</b>, {duration(extent)}"
                for code, extent in zip(phase, (blocks.end_ns - blocks.start_ns).tolist(), strict=True)
            ],
            "hoverinfo": "text",
        }

    def _layout(self, begin_ns: int, end_ns: int) -> dict[str, Any]:
        titled = list(zip(self.lanes.lanes, self._y_of_lane, strict=True))
        bottoms = [*(y - _LANE_GAP for y in self._y_of_lane[1:]), self.height]
        begin, end = self.seconds(np.array([begin_ns, end_ns]))
        return {
            "barmode": "overlay",
            "bargap": 0,
            "showlegend": False,
            "hovermode": "closest",
            "dragmode": "zoom",
            "height": self.pixels_high,
            "margin": dict(MARGIN),
            "xaxis": {
                "range": [begin, end],
                "tickformat": "~s",
                "ticksuffix": "s",
                "zeroline": False,
                "minallowed": 0,
                "maxallowed": self.seconds(np.array([self.whole_ns[1]]))[0],
            },
            "yaxis": {
                "range": [self.height, 0],
                "fixedrange": True,
                "showgrid": False,
                "zeroline": False,
                "tickvals": [(top + bottom) / 2 for (_, top), bottom in zip(titled, bottoms, strict=True)],
                "ticktext": [hover(fitted(lane.title, 13)) for lane, _ in titled],
            },
            **self._decoration(begin_ns, end_ns, bottoms),
        }

    def _decoration(self, begin_ns: int, end_ns: int, bottoms: list[float]) -> dict[str, Any]:
        """Lines under lanes, and where steps begin."""
        line = {"color": "rgba(138,145,153,0.35)", "width": 1}
        across = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": "y", "layer": "below", "line": line}
        shapes = [{**across, "y0": y + _LANE_GAP / 2, "y1": y + _LANE_GAP / 2} for y in bottoms[:-1]]
        visible = [(step, at) for step, at in self._steps if begin_ns <= at < end_ns]
        if len(self._steps) < 2 or len(visible) > _MOST_STEP_LINES:
            return {"shapes": shapes, "annotations": []}
        down = {"type": "line", "xref": "x", "yref": "paper", "y0": 0, "y1": 1, "layer": "below"}
        places = self.seconds(np.array([at for _, at in visible], np.int64))
        shapes += [{**down, "x0": x, "x1": x, "line": {**line, "dash": "dot"}} for x in places]
        stride = -(-len(visible) // _MOST_STEP_LABELS) if visible else 1
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
            for (step, _), x in list(zip(visible, places, strict=True))[::stride]
        ]
        return {"shapes": shapes, "annotations": annotations}


class _PhaseRuns:
    """For each thread, the stretches of one phase after another."""

    def __init__(self, trace: Trace, arranged: Lanes) -> None:
        lane_of_thread = {lane.thread: index for index, lane in enumerate(arranged.lanes) if lane.thread >= 0}
        parent = nesting(trace).parent
        inner = np.where(parent >= 0, trace.kind[parent] == OP, False)
        events = np.flatnonzero((trace.kind == OP) & ~inner & ~trace.is_async)
        events = events[np.argsort(trace.thread[events], kind="stable")]
        thread, phase = trace.thread[events], trace.phase[events]
        changes = (np.diff(thread, prepend=-1) != 0) | (np.diff(phase, prepend=-1) != 0)
        begins = np.flatnonzero(changes)
        starts = trace.start_ns[events][begins]
        ends = np.maximum.reduceat(trace.end_ns[events], begins) if len(begins) else starts
        row = np.array([lane_of_thread[int(value)] for value in thread[begins]], np.int32)
        #: With one phase alone there is nothing to tell apart.
        self.shown = len(np.unique(phase)) > 1
        self.phase: Int8 = phase[begins]
        self.levels = Levels(row if self.shown else np.full(len(row), -1, np.int32), starts, ends - starts)


def _step_starts(trace: Trace) -> list[tuple[int, int]]:
    """Each step that was recorded, and when its first event began."""
    steps, first = np.unique(trace.step, return_index=True)
    return list(zip(steps.tolist(), trace.start_ns[first].tolist(), strict=True))


def shapes_text(shapes: Any) -> str:
    """Shapes as PyTorch writes them: `[64, 256] [256]`."""
    return " ".join(str(list(shape)).replace("(", "[").replace(",)", "]").replace(")", "]") for shape in shapes)


_of_trace: WeakKeyDictionary[Trace, dict[bool, Timeline]] = WeakKeyDictionary()


def arranged(trace: Trace, python: bool = False) -> Timeline:
    """The trace's `Timeline`, made once."""
    kept = _of_trace.setdefault(trace, {})
    if python not in kept:
        kept[python] = Timeline(trace, python)
    return kept[python]


def timeline(trace: Trace, python: bool = False) -> Figure:
    """The whole trace as a plotly figure: a lane for each thread, at most 2,000 blocks."""
    import plotly.graph_objects as go

    chart = arranged(trace, python)
    picture = chart.picture(*chart.whole_ns)
    return go.Figure(picture)
