"""Python stacks of threads that start while Kineto records: its own tracer knows only those that existed before."""

from __future__ import annotations

import sys
import threading
import time
from types import FrameType
from typing import Any

import numpy as np

from mtprof_nb.capture.clock import Clock
from mtprof_nb.capture.samples.python_stacks import StackEntry, Stacks
from mtprof_nb.model.trace import Int64


class ThreadStacks:
    """Notes, in each new thread, the moment and the stack of every call into C; ops run inside such calls."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._stacks = Stacks()
        self._is_recording = False
        #: By native thread id: the time and the stack of each call.
        self._calls: dict[int, tuple[list[int], list[StackEntry]]] = {}

    def install(self) -> None:
        """Follow threads from now on, unless another profiler follows them."""
        if threading.getprofile() is None:
            self._is_recording = True
            threading.setprofile(self._begin)

    def remove(self) -> None:
        """Follow no more; a thread that still runs removes its profile function at its next call."""
        self._is_recording = False
        if threading.getprofile() == self._begin:
            threading.setprofile(None)

    def _begin(self, frame: FrameType, event: str, argument: Any) -> None:
        # A later thread may reuse the native id of one that has ended.
        times, entries = self._calls.setdefault(threading.get_native_id(), ([], []))
        now, capture = time.perf_counter_ns, self._stacks.capture

        def note(frame: FrameType, event: str, argument: Any) -> None:  # noqa: ARG001 - as sys.setprofile calls it
            if event == "c_call":
                times.append(now())
                entries.append(capture(frame))
            if not self._is_recording:
                sys.setprofile(None)

        sys.setprofile(note)
        note(frame, event, argument)

    def at(self, native_id: int, times: Int64) -> tuple[list[StackEntry | None], Int64]:
        """The stack of the last call that the thread made before each of `times`, and when it was made."""
        called, entries = self._calls.get(native_id, ([], []))
        moments = np.array(called, np.int64) + self._clock.offset_ns
        last = np.searchsorted(moments, times, side="right") - 1
        began = np.where(last >= 0, moments[last], 0) if len(moments) else np.zeros(len(times), np.int64)
        return [entries[one] if one >= 0 else None for one in last.tolist()], began
