"""Where events are drawn: the processes and threads of a Chrome trace, and the lines that name them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from mtprof_nb.export.chrome_text import quoted
from mtprof_nb.export.fixed_width import Words, choice
from mtprof_nb.model.trace import Int32, Int64, Process, Trace, Track

#: Kineto sorts devices behind all processes.
_FIRST_DEVICE = 5_000_000


class Lane(NamedTuple):
    """One track: `pid` is JSON, a number or a quoted name."""

    pid: str
    tid: int
    name: str


class Lanes:
    """The lane of each of a trace's tracks: a thread of a process, or a stream of a device."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.pids = _pids(trace.processes)
        self.lanes = [self._lane(track) for track in trace.tracks]
        self._places = [f',"pid":{lane.pid},"tid":{lane.tid},"ts":' for lane in self.lanes]

    def _lane(self, track: Track) -> Lane:
        pid, name = self.pids[track.process], track.name or f"{track.kind} {track.native_id}"
        if not track.device:
            return Lane(str(pid), track.native_id, name)
        index = int(track.device.rpartition(":")[2] or 0)
        # Kineto calls a device's process by the device's index; those of several processes need numbers of their own.
        alone = len(self._trace.processes) == 1
        return Lane(str(index if alone else _FIRST_DEVICE + 1_000 * track.process + index), track.native_id, name)

    def places(self, rows: Int64) -> Words:
        """The text that puts each of `rows` on its lane, up to the time to be written next."""
        return self.places_of_tracks(self._trace.track[rows])

    def places_of_tracks(self, tracks: Int32) -> Words:
        """The text that puts something on each of `tracks`; -1 is a thread that nothing else was recorded of."""
        nowhere = f',"pid":{self.pids[0]},"tid":0,"ts":'
        return choice([*self._places, nowhere], np.where(tracks < 0, len(self._places), tracks))

    def naming_lines(self, ts: str) -> Iterator[str]:
        """The `M` events that name and sort each process and lane in use."""
        used = np.flatnonzero(np.bincount(self._trace.track)).tolist()
        processes = zip(self.pids, self._trace.processes, strict=True)
        labels = {str(pid): _process_label(process) for pid, process in processes}
        for number in used:
            labels.setdefault(self.lanes[number].pid, self._trace.tracks[number].device.replace(":", " "))
        for pid, label in labels.items():
            order = int(pid) if int(pid) in self.pids else _FIRST_DEVICE + int(pid)
            yield from _process_lines(ts, pid, "python", label, order)
        for number in used:
            yield from _track_lines(ts, self.lanes[number])


def _pids(processes: Sequence[Process]) -> list[int]:
    """A number for each process: its own where all differ, as they may not on several hosts."""
    own = [process.pid for process in processes]
    return own if len(set(own)) == len(own) else list(range(1, len(own) + 1))


def _process_label(process: Process) -> str:
    return f"rank {process.rank} CPU" if process.rank >= 0 else "CPU"


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
