"""The CPU's allocator records for hook `dispatch`: only Kineto has them, so it runs beside the mode."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mtprof_nb.building.allocator_records import held_around, innermost_events, of_recording
from mtprof_nb.capture.clock import WallClock
from mtprof_nb.capture.hook import Request
from mtprof_nb.capture.kineto.kineto_hook import KinetoHook
from mtprof_nb.errors import warn
from mtprof_nb.model.trace import OP, Allocations, Recorded, Trace, Track


class _MemoryHook(KinetoHook):
    """Kineto for its allocator records alone."""

    def _warn_of_jump(self) -> None:
        warn(f"profile_memory: {self._wall.jump}: some CPU memory may be attributed to a neighbouring op; record again")

    def _warn_of_missing_threads(self, trace: Trace) -> None:
        """Nothing: its threads are another hook's."""


class KinetoMemory:
    """The CPU allocator's records of one window; without Kineto none, with a warning."""

    def __init__(self, torch: Any, request: Request) -> None:
        self._request = replace(request, activities=frozenset({"CPU"}), recorded=Recorded(profile_memory=True))
        self._hook: _MemoryHook | None = None
        self._wall = WallClock(request.clock)
        if torch.profiler.kineto_available():
            self._hook = _MemoryHook(self._request)

    def prepare(self) -> None:
        if self._hook is None:
            warn("profile_memory: this build of PyTorch has no Kineto, so CPU memory is not recorded")
        else:
            self._hook.prepare()

    def start(self) -> None:
        self._wall.note()
        if self._hook is not None:
            self._hook.start()

    def check_thread(self) -> None:
        if self._hook is not None:
            self._hook.check_thread()

    def abandon(self) -> None:
        if self._hook is not None:
            self._hook.abandon()

    def stop(self) -> tuple[Allocations, tuple[Track, ...]] | None:
        """End the recording: the CPU allocator's records, and their threads. Harmless after a failed start."""
        if self._hook is None:
            return None
        self._wall.note()
        trace = self._hook.stop()
        records = trace.allocations
        if records is None:
            return None
        if not self._wall.has_jumped:  # the hook itself corrects a jump
            records = replace(records, time_ns=self._wall.of_session(records.time_ns))
        return records, trace.tracks


def with_cpu_memory(trace: Trace, records: Allocations, threads: tuple[Track, ...]) -> Trace:
    """`trace` with records of `threads`, each for the innermost event that was running, and readings of CPU ops."""
    position = {thread.native_id: index for index, thread in enumerate(trace.tracks)}
    known = np.array([*(position.get(thread.native_id, -1) for thread in threads), -1], np.int32)
    track, cpu = known[records.track], trace.devices.index("CPU")
    kept = np.flatnonzero(track >= 0)
    own = replace(records.take(kept), track=track[kept], device=np.full(len(kept), cpu, np.int8))
    own = of_recording(trace, replace(own, event=innermost_events(trace, own)))
    ops = (trace.kind == OP) & (trace.device == cpu) & np.isin(trace.track, known)
    before, after = held_around(trace, own, ops)
    if trace.memory_before is not None and trace.memory_after is not None:
        before = np.where(before >= 0, before, trace.memory_before)
        after = np.where(after >= 0, after, trace.memory_after)
    parts = [own] if trace.allocations is None else [trace.allocations, own]
    return replace(trace, memory_before=before, memory_after=after, allocations=Allocations.joined(parts))
