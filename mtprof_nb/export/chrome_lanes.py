"""Where events are drawn: the processes and threads of a Chrome trace, and the lines that name them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mtprof_nb.export.chrome_text import quoted
from mtprof_nb.export.fixed_width import Words, choice
from mtprof_nb.trace import KERNEL, Int16, Int64, Trace

#: Kineto sorts devices behind all processes.
_FIRST_DEVICE = 5_000_000


class Lane(NamedTuple):
    """One track: `pid` is JSON, a number or a quoted name."""

    pid: str
    tid: int
    name: str


class Lanes:
    """The track of each event: its thread, or the stream of its device."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        count = len(trace.threads)
        on_device = trace.kind == KERNEL
        self.of_event: Int64 = trace.thread.astype(np.int64) + count * on_device
        self._device_of_lane: dict[int, str] = {}
        kernels = np.flatnonzero(on_device)
        lanes, first = np.unique(self.of_event[kernels], return_index=True)
        index_of_lane: dict[int, int] = {}
        for lane, row in zip(lanes.tolist(), kernels[first].tolist(), strict=True):
            index_of_lane[lane] = int(trace.device_index[row])
            self._device_of_lane[lane] = f"{trace.devices[trace.device[row]]} {index_of_lane[lane]}"
        self.lanes = [
            Lane(str(trace.pid), thread.native_id, thread.name or f"thread {thread.native_id}")
            for thread in trace.threads
        ]
        self.lanes += [
            Lane(str(index_of_lane.get(count + number, 0)), thread.native_id, thread.name)
            for number, thread in enumerate(trace.threads)
        ]
        self._places = [f',"pid":{lane.pid},"tid":{lane.tid},"ts":' for lane in self.lanes]

    def places(self, rows: Int64) -> Words:
        """The text that puts each of `rows` on its track, up to the time to be written next."""
        return choice(self._places, self.of_event[rows])

    def places_of_threads(self, threads: Int16) -> Words:
        """The text that puts an entry on the track of its thread; -1 is a thread that no event was recorded of."""
        nowhere = f',"pid":{self._trace.pid},"tid":0,"ts":'
        return choice([*self._places, nowhere], np.where(threads < 0, len(self._places), threads))

    def naming_lines(self, ts: str) -> Iterator[str]:
        """The `M` events that name and sort each process and track in use."""
        used = _distinct(self.of_event)
        labels = {self.lanes[lane].pid: self._device_of_lane.get(lane, "CPU") for lane in reversed(used)}
        labels.setdefault(str(self._trace.pid), "CPU")
        for pid, label in labels.items():
            order = self._trace.pid if label == "CPU" else _FIRST_DEVICE + int(pid)
            yield from _process_lines(ts, pid, "python", label, order)
        for lane in used:
            yield from _track_lines(ts, self.lanes[lane])


def _distinct(lanes: Int64) -> list[int]:
    found: list[int] = np.flatnonzero(np.bincount(lanes)).tolist()
    return found


def naming_line(name: str, ts: str, pid: str, tid: int, args: str) -> str:
    """One `M` event; `args` is the inside of a JSON object."""
    return f'{{"ph":"M","name":{quoted(name)},"ts":{ts},"pid":{pid},"tid":{tid},"args":{{{args}}}}},\n'


def _process_lines(ts: str, pid: str, name: str, label: str, order: int) -> Iterator[str]:
    yield naming_line("process_name", ts, pid, 0, f'"name":{quoted(name)}')
    yield naming_line("process_labels", ts, pid, 0, f'"labels":{quoted(label)}')
    yield naming_line("process_sort_index", ts, pid, 0, f'"sort_index":{order}')


def _track_lines(ts: str, lane: Lane) -> Iterator[str]:
    yield naming_line("thread_name", ts, lane.pid, lane.tid, f'"name":{quoted(lane.name)}')
    yield naming_line("thread_sort_index", ts, lane.pid, lane.tid, f'"sort_index":{lane.tid}')
