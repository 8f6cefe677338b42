"""Processes and threads of a Chrome trace: which one each event is drawn on, and the lines that name them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from mtprof_nb.export.chrome_text import quoted
from mtprof_nb.export.fixed_width import Words, choice
from mtprof_nb.model.trace import Int32, Int64, Process, Trace, Track

#: Kineto sorts devices behind all processes.
_FIRST_DEVICE = 5_000_000
#: Kineto adds this to the number of a stream for the track of its waits.
_ABOVE_STREAMS = 1_000_000


class ChromeTrack(NamedTuple):
    """The process and thread under which a Chrome trace has a track; `pid` is JSON."""

    pid: str
    tid: int
    name: str


class ChromeTracks:
    """The tracks of a trace as a Chrome trace has them."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.pids = _pids(trace.processes)
        self._tracks = _with_own_numbers(self._written(track) for track in trace.tracks)
        self._fields = [f',"pid":{track.pid},"tid":{track.tid},"ts":' for track in self._tracks]

    def _written(self, track: Track) -> ChromeTrack:
        if not track.device:
            return ChromeTrack(str(self.pids[track.process]), track.native_id, track.title)
        index = int(track.device.rpartition(":")[2] or 0)
        # Kineto calls a device's process by the device's index; those of several processes need numbers of their own.
        if len(self._trace.processes) > 1:
            index += _FIRST_DEVICE + 1_000 * track.process
        return ChromeTrack(str(index), track.native_id, track.title)

    def fields(self, rows: Int64) -> Words:
        """`pid`, `tid` and the key `ts` of each of `rows`; its time is to be written next."""
        return self.fields_of_tracks(self._trace.track[rows])

    def fields_of_tracks(self, tracks: Int32) -> Words:
        """`pid`, `tid` and the key `ts` for each of `tracks`; -1 is a thread without recorded events."""
        unknown = f',"pid":{self.pids[0]},"tid":0,"ts":'
        return choice([*self._fields, unknown], np.where(tracks < 0, len(self._fields), tracks))

    def naming_lines(self, ts: str) -> Iterator[str]:
        """The `M` events that name and sort each process and track in use."""
        used = np.flatnonzero(np.bincount(self._trace.track)).tolist()
        processes = self._trace.processes
        labels = {str(pid): self._label(process, "CPU") for pid, process in zip(self.pids, processes, strict=True)}
        for number in used:
            track = self._trace.tracks[number]
            label = track.device.replace(":", " ")
            label = label if len(processes) == 1 else self._label(processes[track.process], label)
            labels.setdefault(self._tracks[number].pid, label)
        for pid, label in labels.items():
            order = int(pid) if int(pid) in self.pids else _FIRST_DEVICE + int(pid)
            yield naming_line("process_name", ts, pid, 0, '"name":"python"')
            yield naming_line("process_labels", ts, pid, 0, f'"labels":{quoted(label)}')
            yield naming_line("process_sort_index", ts, pid, 0, f'"sort_index":{order}')
        for number in used:
            pid, tid, name = self._tracks[number]
            yield naming_line("thread_name", ts, pid, tid, f'"name":{quoted(name)}')
            yield naming_line("thread_sort_index", ts, pid, tid, f'"sort_index":{tid}')

    def _label(self, process: Process, device: str) -> str:
        is_named = process.rank >= 0 or len(self._trace.processes) > 1
        return f"{process.title} {device}" if is_named else device


def _with_own_numbers(tracks: Iterable[ChromeTrack]) -> list[ChromeTrack]:
    """The tracks, each with a number that no other has: waits and planes of a stream share its number."""
    by_number: dict[tuple[str, int], ChromeTrack] = {}
    for track in tracks:
        tid = track.tid
        while (track.pid, tid) in by_number:
            tid += _ABOVE_STREAMS
        by_number[track.pid, tid] = track._replace(tid=tid)
    return list(by_number.values())


def _pids(processes: Sequence[Process]) -> list[int]:
    """A number for each process: its own where all differ, as they may not on several hosts."""
    own = [process.pid for process in processes]
    return own if len(set(own)) == len(own) else list(range(1, len(own) + 1))


def naming_line(name: str, ts: str, pid: str, tid: int, args: str) -> str:
    """One `M` event; `args` is the inside of a JSON object."""
    return f'{{"ph":"M","name":{quoted(name)},"ts":{ts},"pid":{pid},"tid":{tid},"args":{{{args}}}}},\n'
