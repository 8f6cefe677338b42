"""Where calls and events of devices ran: the thread of a call, the stream of an event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mtprof_nb.capture.native.kineto_rows import DeviceRows
from mtprof_nb.capture.samples.thread_names import name_of_native_thread
from mtprof_nb.model.intervals import runs_of_equal
from mtprof_nb.model.trace import SYNC, Int32, Int64, Track

_LOW_HALF = 0xFFFFFFFF


@dataclass(frozen=True)
class Places:
    """The track of each row. Tracks are threads, and after these streams."""

    track: Int32
    threads: tuple[Track, ...]
    #: Index of the device, number, and whether it has what waits for the stream: such overlaps work.
    streams: tuple[tuple[int, int, bool], ...]

    @classmethod
    def of(
        cls,
        recorded: Sequence[tuple[int, int, int, int]],
        rows: DeviceRows,
        tracks: tuple[Track, ...],
        python_threads: Mapping[int, int],
    ) -> Places:
        """The places of `rows`; `tracks` are those of the recorder's threads, `recorded`."""
        calls, there = np.flatnonzero(rows.is_call), np.flatnonzero(~rows.is_call)
        threads = _Threads(recorded, tracks, python_threads)
        track = np.empty(len(rows), np.int32)
        numbers = rows.resource & _LOW_HALF
        for run in runs_of_equal(numbers[calls]):
            here = calls[run]
            track[here] = threads.of(int(numbers[here[0]]), rows.start[here])
        is_sync = rows.kind[there] == SYNC
        key = (((rows.device[there].astype(np.int64) << 1) + is_sync) << 32) + numbers[there]
        streams, place = np.unique(key, return_inverse=True)
        track[there] = place + len(threads.tracks)
        made = [(max(one >> 33, 0), _number(one & _LOW_HALF), bool(one >> 32 & 1)) for one in streams.tolist()]
        return cls(track, tuple(threads.tracks), tuple(made))

    @property
    def count(self) -> int:
        """The number of tracks."""
        return len(self.threads) + len(self.streams)

    @property
    def index_of_track(self) -> list[int]:
        """The index of the device of each track, 0 for a thread."""
        return [0] * len(self.threads) + [index for index, _, _ in self.streams]

    def all_tracks(self, device: str) -> tuple[Track, ...]:
        """Threads, then streams of devices of this type."""
        streams = [
            Track(number, f"stream {number}" + ", syncs" * is_sync, "stream", device=f"{device}:{index}")
            for index, number, is_sync in self.streams
        ]
        return (*self.threads, *streams)


def _number(low_half: int) -> int:
    """The number of a stream, -1 for all of a device."""
    return -1 if low_half == _LOW_HALF else low_half


class _Threads:
    """Finds threads by their native number, or by the low half of that of the system's library.

    CUPTI has the latter, which is used again when a thread has ended.
    """

    def __init__(
        self,
        recorded: Sequence[tuple[int, int, int, int]],
        tracks: tuple[Track, ...],
        python_threads: Mapping[int, int],
    ) -> None:
        self.tracks = list(tracks)
        self._python_threads = python_threads
        self._by_native = {track.native_id: at for at, track in enumerate(tracks)}
        self._by_low: dict[int, list[tuple[int, int]]] = {}
        for at, (_, _, low, joined_ns) in enumerate(recorded):
            self._by_low.setdefault(low, []).append((joined_ns, at))

    def of(self, number: int, moments: Int64) -> Int32:
        """The track of a thread at each of these moments."""
        same = sorted(self._by_low.get(number, ()))
        if same:
            # Of several threads with one number, the last that took part before.
            joined_ns = np.array([moment for moment, _ in same])
            last = np.maximum(np.searchsorted(joined_ns, moments, side="right") - 1, 0)
            return np.array([at for _, at in same], np.int32)[last]
        return np.full(len(moments), self._other(number), np.int32)

    def _other(self, number: int) -> int:
        """A thread known by its native number, or one that ran no op."""
        native_id = number
        if number not in self._by_native:
            native_id = self._python_threads.get(number, number)
        if native_id not in self._by_native:
            self._by_native[native_id] = len(self.tracks)
            self.tracks.append(Track(native_id, name_of_native_thread(native_id)))
        return self._by_native[native_id]
