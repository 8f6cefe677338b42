"""Phases above the lanes of a timeline, distinguished by pattern and name; colours are for op families."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from mtprof_nb.analysis.lanes import Lanes
from mtprof_nb.analysis.lod import Blocks, Levels
from mtprof_nb.analysis.nesting import nesting
from mtprof_nb.model.trace import OP, PHASES, Int8, Int64, Trace
from mtprof_nb.views.units import duration

#: Space above a lane, in rows, and the height of the ribbon in it.
ROOM, _HEIGHT = 0.85, 0.66
_MOST_RUNS = 240
_NAME_PIXELS = 64
_HATCH = {"forward": "", "backward": "/", "optimizer": "|", "other": "."}

Seconds = Callable[[Int64], list[float]]


def outermost_ops(trace: Trace) -> Int64:
    """Positions of the ops that are not nested in an op."""
    parent = nesting(trace).parent
    inner = np.where(parent >= 0, trace.kind[parent] == OP, False)
    return np.flatnonzero((trace.kind == OP) & ~inner & ~trace.is_async)


class PhaseRibbon:
    """The consecutive phases of each thread."""

    def __init__(self, trace: Trace, arranged: Lanes) -> None:
        lane_of_thread = {lane.thread: index for index, lane in enumerate(arranged.lanes) if lane.thread >= 0}
        events = outermost_ops(trace)
        events = events[np.argsort(trace.track[events], kind="stable")]
        thread, phase = trace.track[events], trace.phase[events]
        begins = np.flatnonzero((np.diff(thread, prepend=-1) != 0) | (np.diff(phase, prepend=-1) != 0))
        starts = trace.start_ns[events][begins]
        ends = np.maximum.reduceat(trace.end_ns[events], begins) if len(begins) else starts
        lane = np.array([lane_of_thread[int(value)] for value in thread[begins]], np.int32)
        #: Not with a single phase.
        self.shown = len(np.unique(phase)) > 1
        self._phase: Int8 = phase[begins]
        self._levels = Levels(lane if self.shown else np.full(len(lane), -1, np.int32), starts, ends - starts)

    def traces(
        self,
        drawn: tuple[int, int],
        visible: tuple[int, int],
        scale: float,
        lane_tops: list[float],
        seconds: Seconds,
    ) -> list[dict[str, Any]]:
        """Plotly's traces of the window `drawn`: a bar for each phase, with its name in the `visible` part."""
        pixels = round((drawn[1] - drawn[0]) * scale)
        blocks = self._levels.window(*drawn, limit=_MOST_RUNS, pixels=pixels // 3)
        codes = self._levels.parts(blocks, self._phase, len(PHASES)).dominant(len(blocks))
        phases = [PHASES[code] for code in codes.tolist()]
        y = np.array(lane_tops or [0.0])[blocks.row] + _HEIGHT / 2 + 0.05
        return [_bars(blocks, phases, y, seconds), _names(blocks, phases, y, seconds, visible, scale)]


def _bars(blocks: Blocks, phases: list[str], y: npt.NDArray[np.float64], seconds: Seconds) -> dict[str, Any]:
    extent = blocks.end_ns - blocks.start_ns
    texts = [f"<b>{phase}</b>, {duration(ns)}" for phase, ns in zip(phases, extent.tolist(), strict=True)]
    pattern = {"shape": [_HATCH[phase] for phase in phases], "fgcolor": "#8a9199", "size": 5, "solidity": 0.14}
    return {
        "type": "bar",
        "name": "phases",
        "orientation": "h",
        "base": seconds(blocks.start_ns),
        "x": (extent / 1e9).tolist(),
        "y": y.tolist(),
        "width": _HEIGHT,
        "marker": {
            "color": "rgba(138,145,153,0.18)",
            "pattern": {**pattern, "fillmode": "overlay"},
            "line": {"width": 0},
        },
        "hovertext": texts,
        "hoverinfo": "text",
    }


def _names(
    blocks: Blocks,
    phases: list[str],
    y: npt.NDArray[np.float64],
    seconds: Seconds,
    visible: tuple[int, int],
    scale: float,
) -> dict[str, Any]:
    left, right = np.maximum(blocks.start_ns, visible[0]), np.minimum(blocks.end_ns, visible[1])
    wide = np.flatnonzero((right - left) * scale > _NAME_PIXELS)
    return {
        "type": "scatter",
        "name": "phase names",
        "mode": "text",
        "x": seconds((left + (right - left) // 2)[wide]),
        "y": y[wide].tolist(),
        "text": [phases[block] for block in wide.tolist()],
        "textfont": {"size": 10},
        "hoverinfo": "skip",
    }
