"""Threads that began before a recording with hook `dispatch`, where no mode can be pushed: Kineto records them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from mtprof_nb.capture.clock import WallClock
from mtprof_nb.capture.hook import Request
from mtprof_nb.capture.kineto.busy_threads import ThreadsBefore
from mtprof_nb.capture.kineto.kineto_hook import KinetoHook
from mtprof_nb.errors import MtprofError, collected_warnings, warn
from mtprof_nb.model.trace import Recorded, Trace

_NEVER = np.iinfo(np.int64).max


class UnfollowedThreads:
    """Records the ops of threads that exist at the start, with Kineto; starts nothing where there are none."""

    def __init__(self, torch: Any, request: Request) -> None:
        recorded = request.recorded
        self._is_with_memory = recorded.profile_memory
        # Kineto cannot record memory and other threads at once.
        self._can_record = torch.profiler.kineto_available() and not recorded.profile_memory
        kept = Recorded(record_shapes=recorded.record_shapes, with_flops=recorded.with_flops)
        self._request = replace(request, recorded=kept, experimental_config=None)
        self._threads = ThreadsBefore()
        self._wall = WallClock(request.clock)
        self._hook: KinetoHook | None = None

    def start(self) -> None:
        self._threads.note()
        if not (self._can_record and self._threads.native_ids):
            return
        # Where it fails these threads are missing, and `stop` names those that ran.
        with suppress(MtprofError):
            hook = KinetoHook(self._request)
            self._wall.note()
            hook.start()
            self._hook = hook

    def toggle(self, enable: bool, activities: frozenset[str]) -> None:
        """Record, or leave out, ops on these devices from now on."""
        if self._hook is not None:
            self._hook.toggle(enable, activities)

    def abandon(self) -> None:
        if self._hook is not None:
            self._hook.abandon()

    def stop(self) -> Trace | None:
        """The ops of these threads; None, with a warning if the threads ran, where the ops were not recorded."""
        ran = self._threads.that_ran()
        trace = None if self._hook is None else self._recorded(self._hook)
        if trace is None and ran:
            without_memory = ", or profile without profile_memory" * self._is_with_memory
            warn(f"{ran}; start threads inside the recording{without_memory}")
        return trace

    def _recorded(self, hook: KinetoHook) -> Trace | None:
        self._wall.note()
        problems: list[str] = []
        with collected_warnings(problems):
            trace = hook.stop()
        self._hook = None
        # `stop` warns of the missing threads, whatever the problem was.
        if problems or not hook.threads.are_all:
            return None
        trace = replace(trace, start_ns=self._wall.of_session(trace.start_ns))
        wanted = np.array([thread.native_id in self._threads.native_ids for thread in trace.tracks], np.bool_)
        return trace.take(wanted[trace.track]) if len(trace) else trace


def not_followed(trace: Trace, followed: Trace) -> Trace:
    """The events of `trace` that ended before the first one that `followed` has of their thread."""
    first = {
        thread.native_id: followed.start_ns[followed.track == index].min(initial=_NEVER)
        for index, thread in enumerate(followed.tracks)
    }
    until = np.array([first.get(thread.native_id, _NEVER) for thread in trace.tracks], np.int64)
    kept = trace.take(trace.end_ns <= until[trace.track])
    used, thread = np.unique(kept.track, return_inverse=True)
    return replace(kept, track=thread.astype(np.int32), tracks=tuple(kept.tracks[one] for one in used))
