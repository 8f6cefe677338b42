"""Processes and tracks of a file: threads of the host, and streams of devices."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mtprof_nb.model.schema import Bool, Int8, Int32, Int64
from mtprof_nb.model.trace import OP, PYTHON, SYNC, Process, Track, on_device
from mtprof_nb.reading.columns.device_owners import owners_of_lanes
from mtprof_nb.reading.spans.descriptions import Descriptions
from mtprof_nb.reading.spans.growing_columns import Numbering
from mtprof_nb.reading.spans.spans import Spans

#: Process and thread as a file spells them: numbers or texts.
Lane = tuple[Any, Any]
#: Since 2026 Kineto draws the waits of a stream on a thread of their own, with this added to the stream's number.
SYNC_OFFSET = 1_000_000
_MOST_INDEX = 127
#: A file with more threads and streams, or processes, than these has the rest together on one track, in one process.
_MOST_TRACKS, _MOST_PROCESSES = 10_000, 1_024
#: The track of a process without a number: time that the recorder took.
_OVERHEAD = "profiler"
#: A process of a file that a tool merged: the label of its rank, and its number there.
_LABELLED = re.compile(r"\[([^\[\]]{1,100})\] (-?\d{1,18})")
_THREAD = re.compile(r"thread (-?\d+)(?: \((.*)\))?", re.IGNORECASE)


class DeviceNumbers(NamedTuple):
    """How a dialect numbers devices: their type, and the index from the `pid` of an event on a device."""

    device: str
    index_of: Callable[[Int64], Int64] = lambda pid: pid


@dataclass(frozen=True)
class FileTracks:
    """The track of each span and the index of its device; tracks and processes."""

    track: Int32
    tracks: tuple[Track, ...]
    device_index: Int8
    processes: tuple[Process, ...]
    #: For each process, its number as the file spells it.
    pids: tuple[Any, ...]


def is_asleep(lanes: Sequence[Lane], spans: Spans, kind: Int8) -> Bool:
    """Python calls of threads that slept throughout: Kineto writes them to process 0 and thread 0."""
    nowhere = spans.where("lane", (tid == 0 and (pid == 0 or _number(pid) == 0) for pid, tid in lanes))
    asleep: Bool = nowhere & (kind == PYTHON) & ~(nowhere & (kind == OP)).any()
    return asleep


def file_tracks(
    lanes: Sequence[Lane],
    spans: Spans,
    kind: Int8,
    described: Descriptions,
    numbers: DeviceNumbers,
    tally: Counter[str],
) -> FileTracks:
    """A track for each thread, and for each stream of a device of each process.

    `tally` takes how many of them are not shown as they are, and why.
    """
    lane, runs_on_device = spans["lane"], on_device(kind)
    on_host = lane[~runs_on_device]
    process_of = _processes([lanes[number][0] for number in _in_order(on_host)])
    made = _Tracks()
    track = np.full(len(spans), -1, np.int32)
    of_lane = np.full(len(lanes) + 1, -1, np.int32)
    for number in _in_order(on_host):
        of_lane[number] = made.position(_thread(lanes[number], number, process_of, described))
    track[~runs_on_device] = of_lane[on_host]
    rows = np.flatnonzero(runs_on_device)
    index = np.zeros(len(spans), np.int8)
    if len(rows):
        launched_by, is_tied = owners_of_lanes(lanes, spans, kind, runs_on_device, process_of)
        unclear = {pid for (pid, _), one in zip(lanes, is_tied, strict=True) if one and not label_of(pid)}
        tally["Devices that several processes may have used, shown as used by one of them"] += len(unclear)
        streams = _Streams(lanes, spans, rows, kind, numbers, _with_labels(launched_by, lanes, process_of))
        track[rows], index[rows] = streams.tracks(made, described, len(set(process_of.values())) or 1), streams.index
    first_of: dict[int, Any] = {}
    for pid, position in process_of.items():
        first_of.setdefault(position, pid)
    pids = tuple(first_of.values()) or (0,)
    processes = tuple(
        Process(_whole(pid, 0), label=label_of(pid) or pid if isinstance(pid, str) else "") for pid in pids
    )
    joined = len([pid for pid in process_of if not _is_negative(pid)]) - len(pids)
    tally["Threads and streams that share one track, for there are too many"] += made.too_many
    tally["Processes that are taken for one, for there are too many"] += max(joined, 0)
    return FileTracks(track, tuple(made.known), index, processes, pids)


def _processes(pids: Sequence[Any]) -> dict[Any, int]:
    """The position of each process, in order of appearance. Negative pids, of the recorder's overhead, get none."""
    known = [pid for pid in dict.fromkeys(pids) if not _is_negative(pid)] or list(dict.fromkeys(pids))
    positions = {pid: min(place, _MOST_PROCESSES - 1) for place, pid in enumerate(known)}
    of_label = _first_of_labels(positions)
    return positions | {pid: of_label.get(label_of(pid), 0) for pid in pids if pid not in positions}


def label_of(pid: Any) -> str:
    """The label of a process of a merged file, such as "TP00"; "" for a process of another file."""
    match = _LABELLED.fullmatch(pid) if isinstance(pid, str) else None
    return match[1] if match else ""


def _number(pid: Any) -> int | None:
    match = _LABELLED.fullmatch(pid) if isinstance(pid, str) else None
    return int(match[2]) if match else None


def _first_of_labels(process_of: dict[Any, int]) -> dict[str, int]:
    first: dict[str, int] = {}
    for pid, position in process_of.items():
        first.setdefault(label_of(pid), position)
    return first


def _with_labels(launched_by: Int64, lanes: Sequence[Lane], process_of: dict[Any, int]) -> Int64:
    """For each lane of a device the process that it belongs to: the one with its label, if it has one."""
    of_label = _first_of_labels(process_of)
    labels = [label_of(pid) for pid, _ in lanes]
    owner = [of_label.get(label, own) if label else own for label, own in zip(labels, launched_by, strict=True)]
    return np.array(owner, np.int64)


class _Tracks:
    """Tracks in order of appearance; the last position stands for all that are too many."""

    def __init__(self) -> None:
        self.known: dict[Track, int] = {}
        self.too_many = 0

    def position(self, track: Track) -> int:
        if track not in self.known and len(self.known) >= _MOST_TRACKS - 1:
            self.too_many += 1
            track = Track(-1, "all other threads and streams", track.kind, 0, track.device)
        return self.known.setdefault(track, len(self.known))


def _thread(lane: Lane, number: int, process_of: dict[Any, int], described: Descriptions) -> Track:
    pid, tid = lane
    name = _thread_name(described.thread_names.get(lane, ""), described.process_names.get(pid, ""))
    name = name or (_OVERHEAD if _is_negative(pid) else "")
    return Track(_whole(tid, number), name or ("" if isinstance(tid, int) else str(tid)), process=process_of[pid])


class _Streams:
    """Devices and streams of the spans at `rows`; `owner` has the process of each lane."""

    def __init__(
        self, lanes: Sequence[Lane], spans: Spans, rows: Int64, kind: Int8, numbers: DeviceNumbers, owner: Int64
    ) -> None:
        self._lanes, self._lane, self._device = lanes, spans["lane"][rows], numbers.device
        pid, tid = (np.array([_whole(one[part], 0) for one in lanes] or [0], np.int64)[self._lane] for part in range(2))
        device, stream = spans["device"][rows], spans["stream"][rows]
        index = np.where(device >= 0, device, numbers.index_of(pid))
        self.index = device_indices(index)
        self._process = owner[self._lane]
        self._is_sync = (kind[rows] == SYNC) & (tid >= SYNC_OFFSET)
        # Not every span has a stream in its `args`, and -1 there is also the stream of a whole device.
        self._stream = np.where(stream >= 0, stream, np.where(self._is_sync, tid - SYNC_OFFSET, tid))

    def tracks(self, made: _Tracks, described: Descriptions, processes: int) -> Int32:
        """The track of each span."""
        columns = (self._lane, self.index, self._process, self._is_sync, self._stream)
        known = Numbering()
        position = known.positions_of_rows(*(column.tolist() for column in columns))
        positions = []
        for lane, index, process, is_sync, stream in known:
            given = described.thread_names.get(self._lanes[lane], "")
            name = f"stream {stream}, syncs" if is_sync else _stream_name(given, stream)
            owner = process if 0 <= process < processes else 0
            positions.append(made.position(Track(stream, name, "stream", owner, f"{self._device}:{index}")))
        return np.array(positions, np.int32)[position]


def device_indices(numbers: Int64) -> Int8:
    """Indices of devices; 0 for a number that cannot be one."""
    return np.where((numbers >= 0) & (numbers <= _MOST_INDEX), numbers, 0).astype(np.int8)


def _is_negative(pid: Any) -> bool:
    number = pid if isinstance(pid, int) else _number(pid)
    return number is not None and number < 0


def _in_order(lanes: Int32) -> list[int]:
    """Distinct lanes in order of their first span."""
    distinct, first = np.unique(lanes, return_index=True)
    return [int(distinct[position]) for position in np.argsort(first)]


def _whole(value: Any, default: int) -> int:
    """A number of 63 bits, of text that behind a label or the first digits in it; `default` for all else."""
    if (number := _number(value)) is not None:
        return number
    if isinstance(value, str):
        match = re.search(r"\d{1,18}", value)
        return int(match[0]) if match else default
    is_number = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**62
    return value if is_number else default


def _stream_name(name: str, stream: int) -> str:
    """The name that a file gives a stream, or `stream` and its number."""
    return f"stream {stream}" if not name or name.lower() == f"stream {stream}" else name


def _thread_name(name: str, process: str) -> str:
    """The name of a thread; "" for one that repeats its number or its process alone."""
    match = _THREAD.fullmatch(name.strip())
    if match is None:
        return name.strip()
    inner = match[2] or ""
    return "" if inner == process else inner
