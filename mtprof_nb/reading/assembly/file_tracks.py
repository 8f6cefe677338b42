"""Processes and tracks of a file: threads of the host, and streams of devices."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtprof_nb.model.schema import Bool, Int8, Int32, Int64
from mtprof_nb.model.trace import OP, PYTHON, RUNTIME, SYNC, Process, Track, on_device
from mtprof_nb.reading.collected.descriptions import Descriptions
from mtprof_nb.reading.collected.spans import Spans

#: Since 2026 Kineto draws the waits of a stream on a thread of their own, with this added to the stream's number.
SYNC_OFFSET = 1_000_000
_MOST_INDEX = 127
#: The numbers of devices of several processes in the exports of this package: so many a process, from the first on.
_FIRST_DEVICE, _DEVICES = 5_000_000, 1_000
_THREAD = re.compile(r"thread (-?\d+)(?: \((.*)\))?", re.IGNORECASE)


@dataclass(frozen=True)
class FileTracks:
    """The track and process of each span, and the index of its device."""

    track: Int32
    tracks: tuple[Track, ...]
    device_index: Int8
    processes: tuple[Process, ...]
    #: For each process, its number as the file spells it.
    pids: tuple[Any, ...]


def is_asleep(lanes: list[tuple[Any, Any]], spans: Spans, kind: Int8) -> Bool:
    """Python calls of threads that slept throughout: Kineto writes them to process 0 and thread 0."""
    nowhere: Bool = np.array([lane == (0, 0) for lane in lanes] or [False], np.bool_)[spans["lane"]]
    has_ops = (nowhere & (kind == OP)).any()
    asleep: Bool = nowhere & (kind == PYTHON) & ~has_ops
    return asleep


def file_tracks(lanes: list[tuple[Any, Any]], spans: Spans, kind: Int8, said: Descriptions, device: str) -> FileTracks:
    """A track for each thread, and for each stream of a device of each process."""
    lane, runs_on_device = spans["lane"], on_device(kind)
    pids = tuple(dict.fromkeys(lanes[number][0] for number in _in_order(lane[~runs_on_device]))) or (0,)
    processes = tuple(Process(_whole(pid, 0), label=pid if isinstance(pid, str) else "") for pid in pids)
    tracks: dict[Track, int] = {}
    track = np.full(len(spans), -1, np.int32)
    of_lane = np.full(len(lanes) + 1, -1, np.int32)
    for number in _in_order(lane[~runs_on_device]):
        pid, tid = lanes[number]
        name = _thread_name(said.thread_names.get((pid, tid), ""), said.process_names.get(pid, ""))
        made = Track(_whole(tid, number), name or ("" if isinstance(tid, int) else str(tid)), process=pids.index(pid))
        of_lane[number] = tracks.setdefault(made, len(tracks))
    track[~runs_on_device] = of_lane[lane[~runs_on_device]]
    index = np.zeros(len(spans), np.int64)
    rows = np.flatnonzero(runs_on_device)
    streams = _streams(lanes, spans, rows, kind)
    if len(pids) > 1 and not streams[-1].any():
        streams[-1][:] = _process_of_calls(lanes, lane[kind == RUNTIME], pids)
    keys, first, place = np.unique(np.stack(streams), axis=1, return_index=True, return_inverse=True)
    made_tracks = []
    for (number, stream, syncs, process), row in zip(keys.T.tolist(), rows[first].tolist(), strict=True):
        told = said.thread_names.get(lanes[lane[row]], "")
        name = f"stream {stream}, syncs" if syncs else _stream_name(told, stream)
        position = min(process, len(processes) - 1)
        stream_track = Track(stream, name, "stream", position, f"{device}:{number}")
        made_tracks.append(tracks.setdefault(stream_track, len(tracks)))
    if len(rows):
        track[rows], index[rows] = np.array(made_tracks, np.int32)[place.ravel()], streams[0]
    return FileTracks(track, tuple(tracks), index.astype(np.int8), processes, pids)


def _streams(lanes: list[tuple[Any, Any]], spans: Spans, rows: Int64, kind: Int8) -> list[Int64]:
    """Device, stream, whether it is a track of waits, and the process of the spans at `rows`."""
    lane = spans["lane"][rows]
    pid = np.array([_whole(one, 0) for one, _ in lanes] or [0], np.int64)[lane]
    tid = np.array([_whole(one, 0) for _, one in lanes] or [0], np.int64)[lane]
    device, stream = spans["device"][rows], spans["stream"][rows]
    has_own = pid >= _FIRST_DEVICE
    process = np.where(has_own, (pid - _FIRST_DEVICE) // _DEVICES, 0)
    of_pid = np.where(has_own, (pid - _FIRST_DEVICE) % _DEVICES, pid)
    number = np.where(device >= 0, device, of_pid)
    number = np.where((number >= 0) & (number <= _MOST_INDEX), number, 0)
    syncs = (kind[rows] == SYNC) & (tid >= SYNC_OFFSET)
    written = np.where(syncs, tid - SYNC_OFFSET, tid)
    # Not every span has a stream in its `args`, and -1 there is also the stream of a whole device.
    return [number, np.where(stream >= 0, stream, written), syncs.astype(np.int64), process]


def _process_of_calls(lanes: list[tuple[Any, Any]], of_calls: Int32, pids: tuple[Any, ...]) -> int:
    """The process with the most calls of the device's runtime: a file has the devices of one process."""
    counts = np.bincount([pids.index(lanes[lane][0]) for lane in of_calls.tolist()], minlength=len(pids))
    return int(counts.argmax())


def _in_order(lanes: Int32) -> list[int]:
    """Distinct lanes in order of their first span."""
    distinct, first = np.unique(lanes, return_index=True)
    return [int(distinct[position]) for position in np.argsort(first)]


def _whole(value: Any, default: int) -> int:
    """A number of 63 bits, of text the first digits in it; `default` for all else."""
    if isinstance(value, str):
        match = re.search(r"\d{1,18}", value)
        return int(match[0]) if match else default
    is_number = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**62
    return value if is_number else default


def _stream_name(name: str, stream: int) -> str:
    """The name of a stream: its number, and what else a file says of it."""
    return f"stream {stream}" if not name or name.lower() == f"stream {stream}" else name


def _thread_name(name: str, process: str) -> str:
    """The name of a thread; "" for one that repeats its number or its process alone."""
    match = _THREAD.fullmatch(name.strip())
    if match is None:
        return name.strip()
    inner = match[2] or ""
    return "" if inner == process else inner
