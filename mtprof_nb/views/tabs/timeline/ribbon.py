"""Ribbons above the lanes of a timeline, phases and idle time of devices, and garbage collections behind them."""

from __future__ import annotations

import numpy as np

from mtprof_nb.analysis.devices.idle_gaps import CAUSES, device_gaps
from mtprof_nb.analysis.lanes import Lanes
from mtprof_nb.analysis.lod import Levels
from mtprof_nb.analysis.program_time.gaps import outermost_ops
from mtprof_nb.model.trace import PHASES, Int8, Int64, Trace
from mtprof_nb.views.scene import Answer

#: Space above a lane, in rows.
ROOM = 0.85
_MOST_RUNS = 240


def outermost_ops_on_lanes(trace: Trace) -> Int64:
    """Positions of the outermost ops on the lanes of threads: without those that end on another thread."""
    rows = outermost_ops(trace)
    return rows[~trace.is_async[rows]]


class PhaseRibbon:
    """The consecutive phases of each thread."""

    def __init__(self, trace: Trace, arranged: Lanes) -> None:
        lane_of_thread = {lane.thread: index for index, lane in enumerate(arranged.lanes) if lane.thread >= 0}
        events = outermost_ops_on_lanes(trace)
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

    def window(self, begin_ns: int, end_ns: int, pixels: int, origin_ns: int, most: int = _MOST_RUNS) -> Answer:
        """Columns of the phases in a window: their lane, time since `origin_ns`, and the phase that took longest."""
        blocks = self._levels.window(begin_ns, end_ns, limit=most, pixels=pixels // 3)
        codes = self._levels.parts(blocks, self._phase, len(PHASES)).dominant(len(blocks))
        return {
            "lane": blocks.row.tolist(),
            "start_ns": (blocks.start_ns - origin_ns).tolist(),
            "length_ns": (blocks.end_ns - blocks.start_ns).tolist(),
            "phase": codes.tolist(),
        }


class IdleRibbon:
    """The gaps of each device, by cause, above its first stream."""

    def __init__(self, trace: Trace, arranged: Lanes) -> None:
        lane_of_device = {lane.device: index for index, lane in enumerate(arranged.lanes) if lane.device >= 0}
        by_lane = [(lane_of_device[number], gaps) for number, gaps in enumerate(device_gaps(trace).values())]
        empty = np.empty(0, np.int64)
        lane = np.concatenate([empty, *(np.full(len(gaps), at) for at, gaps in by_lane)]).astype(np.int32)
        starts = np.concatenate([empty, *(gaps.start_ns for _, gaps in by_lane)])
        ends = np.concatenate([empty, *(gaps.end_ns for _, gaps in by_lane)])
        self._cause: Int8 = np.concatenate([empty, *(gaps.cause for _, gaps in by_lane)]).astype(np.int8)
        self._levels = Levels(lane, starts, ends - starts)

    def window(self, begin_ns: int, end_ns: int, pixels: int, origin_ns: int, most: int) -> Answer:
        """Columns of gaps in a window, or of neighbours together: an entry for each cause, with its time in them."""
        blocks = self._levels.window(begin_ns, end_ns, limit=most, pixels=pixels)
        parts = self._levels.parts(blocks, self._cause, len(CAUSES))
        return {
            "lane": blocks.row[parts.block].tolist(),
            "start_ns": (blocks.start_ns[parts.block] - origin_ns).tolist(),
            "length_ns": (blocks.end_ns - blocks.start_ns)[parts.block].tolist(),
            "cause": parts.code.tolist(),
            "count": parts.count.tolist(),
            "time_ns": parts.time_ns.tolist(),
        }


def drawn_collections(trace: Trace, arranged: Lanes, origin_ns: int, most: int) -> Answer:
    """Columns of the `most` longest garbage collections of threads with a lane, in order of time since `origin_ns`."""
    collections = trace.collections
    lane_of = {lane.thread: index for index, lane in enumerate(arranged.lanes) if lane.thread >= 0}
    tracks = [] if collections is None else collections.track.tolist()
    rows = [row for row, track in enumerate(tracks) if track in lane_of]
    if collections is None or not rows:
        return {"lane": [], "start_ns": [], "length_ns": [], "generation": []}
    kept = collections.take(rows)
    kept = kept.take(np.sort(np.argsort(-kept.duration_ns, kind="stable")[:most]))
    return {
        "lane": [lane_of[track] for track in kept.track.tolist()],
        "start_ns": (kept.start_ns - origin_ns).tolist(),
        "length_ns": kept.duration_ns.tolist(),
        "generation": kept.generation.tolist(),
    }
