"""The row of each event on a timeline: a lane for each thread and device stream, rows by depth."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mtprof_nb.analysis import units
from mtprof_nb.analysis.devices.recorded_devices import device_numbers
from mtprof_nb.analysis.nesting import nest, nesting
from mtprof_nb.model.intervals import runs_of_equal
from mtprof_nb.model.trace import DEVICE_SCOPE, PYTHON, Int32, Int64, Trace

#: Deeper events of a thread are not drawn, and the title of its lane has their number.
MOST_LEVELS = 500


class Lane(NamedTuple):
    """Rows `first_row` to `first_row + rows - 1` belong to a thread, a stream, its scopes, or to async events."""

    title: str
    first_row: int
    rows: int
    #: The thread's position in `Trace.tracks`, -1 for what is not a thread.
    thread: int
    #: Of the first stream of a device, the position of the device in `device_work`; -1 for any other lane.
    device: int = -1


@dataclass(frozen=True, eq=False)
class Lanes:
    """The row of each event, -1 for an event that is not drawn, and the lanes the rows belong to."""

    row: Int32
    lanes: tuple[Lane, ...]

    @property
    def rows(self) -> int:
        return sum(lane.rows for lane in self.lanes)


def lanes(trace: Trace, python: bool = False) -> Lanes:
    """Threads in order of their first event, then async events, then device streams; Python frames only if asked for.

    Where there are several processes, each has its lanes one below the other, with its title in theirs.
    """
    shown = np.ones(len(trace), np.bool_) if python else trace.kind != PYTHON
    on_thread = shown & ~trace.on_device & ~trace.is_async
    depth = (nest(trace, on_thread) if np.any(~shown) else nesting(trace)).depth
    row = np.full(len(trace), -1, np.int32)
    made: list[Lane] = []

    def add(title: str, events: Int64, rows: Int32, thread: int = -1) -> None:
        first, levels = made[-1].first_row + made[-1].rows if made else 0, int(rows.max(initial=0)) + 1
        row[events] = np.where(rows < MOST_LEVELS, first + rows, -1)
        if levels > MOST_LEVELS:
            title = f"{title} ({MOST_LEVELS} of {units.number(levels)} levels)"
        device = -1 if thread >= 0 else device_numbers(trace)[events].max(initial=-1)
        is_first = device < 0 or all(lane.device != device for lane in made)
        made.append(Lane(title, first, min(levels, MOST_LEVELS), thread, int(device) if is_first else -1))

    is_async = shown & ~trace.on_device & trace.is_async
    for process, here in enumerate(trace.by_process(trace.track)):
        own = np.arange(len(trace))[here]
        for events in _in_order_of_appearance(own[on_thread[own]], trace.track):
            thread = int(trace.track[events[0]])
            add(trace.track_title(thread), events, depth[events], thread)
        for title, events in [("async", own[is_async[own]]), *_by_stream(trace, own[trace.on_device[own]])]:
            if len(events):
                add(trace.process_title(process, title), events, packed(trace.start_ns[events], trace.end_ns[events]))
    return Lanes(row, tuple(made))


def _in_order_of_appearance(rows: Int64, values: npt.NDArray[Any]) -> list[Int64]:
    """The positions `rows`, divided by their value; the value that comes first is first."""
    return sorted((rows[run] for run in runs_of_equal(values[rows])), key=lambda run: int(run[0]))


def _by_stream(trace: Trace, rows: Int64) -> list[tuple[str, Int64]]:
    """The events of each stream, after the scopes on it; the streams of a device follow one another."""
    if not len(rows):
        return []
    # The index is -1 if the runtime does not report it.
    device = trace.device.astype(np.int64) * 256 + trace.device_index + 1
    stream = trace.track * 2 + (trace.kind != DEVICE_SCOPE)
    streams = []
    for here in _in_order_of_appearance(rows, device):
        kind, index = divmod(int(device[here[0]]), 256)
        title = f"{trace.devices[kind]}:{index - 1}" if index else trace.devices[kind]
        for run in runs_of_equal(stream[here]):
            number = int(stream[here[run[0]]])
            stream_title = f"{title} {trace.tracks[number // 2].title}{'' if number % 2 else ' scopes'}"
            streams.append((stream_title, here[run]))
    return streams


def packed(starts: Int64, ends: Int64) -> Int32:
    """A row for each interval (sorted by start) such that no two in a row overlap, in as few rows as can be."""
    rows = np.zeros(len(starts), np.int32)
    if not np.any(starts[1:] < np.maximum.accumulate(ends)[:-1]):
        return rows
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    opened = 0
    for position, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            rows[position] = heapq.heappop(free)
        else:
            rows[position], opened = opened, opened + 1
        heapq.heappush(busy, (end, int(rows[position])))
    return rows
