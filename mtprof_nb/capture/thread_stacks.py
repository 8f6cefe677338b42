"""Python stacks of threads that start while Kineto records: its own tracer knows only those that existed before."""

from __future__ import annotations

import sys
import sysconfig
import threading
import time
from types import FrameType
from typing import Any

import numpy as np

from mtprof_nb.capture.hook import Clock
from mtprof_nb.capture.stacks import StackEntry, Stacks, is_hidden_file
from mtprof_nb.trace import Int64

_STANDARD_LIBRARY = sysconfig.get_path("stdlib")


def busy_threads() -> list[str]:
    """Names of other threads that are running now, rather than waiting in the standard library or a host."""
    known = {thread.ident: thread.name for thread in threading.enumerate()}
    frames = sys._current_frames()
    frames.pop(threading.get_ident(), None)
    return [known.get(ident, str(ident)) for ident, frame in frames.items() if not _waits(frame.f_code.co_filename)]


def _waits(file: str) -> bool:
    """Whether a thread whose innermost frame is in `file` is taken to wait: for a lock, a queue, a socket."""
    return is_hidden_file(file) or file.startswith(_STANDARD_LIBRARY) or "/zmq/" in file or "/execnet/" in file


class ThreadStacks:
    """Notes, in each new thread, the moment and the stack of every call into C; ops run inside such calls."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._stacks = Stacks()
        self._is_recording = False
        #: By native thread id: when each call was made, and from where.
        self._calls: dict[int, tuple[list[int], list[StackEntry]]] = {}

    def install(self) -> None:
        """Follow threads from now on, unless somebody else profiles them."""
        if threading.getprofile() is None:
            self._is_recording = True
            threading.setprofile(self._begin)

    def remove(self) -> None:
        """Follow no more; a thread that still runs lets go at its next call."""
        self._is_recording = False
        if threading.getprofile() == self._begin:
            threading.setprofile(None)

    def _begin(self, frame: FrameType, event: str, argument: Any) -> None:
        times: list[int] = []
        places: list[StackEntry] = []
        self._calls[threading.get_native_id()] = times, places
        now, capture = time.perf_counter_ns, self._stacks.capture

        def note(frame: FrameType, event: str, argument: Any) -> None:  # noqa: ARG001 - as sys.setprofile calls it
            if event == "c_call":
                times.append(now())
                places.append(capture(frame))
            if not self._is_recording:
                sys.setprofile(None)

        sys.setprofile(note)
        note(frame, event, argument)

    def at(self, native_id: int, times: Int64) -> tuple[list[StackEntry | None], Int64]:
        """The stack of the last call that the thread made before each of `times`, and when it was made."""
        called, places = self._calls.get(native_id, ([], []))
        moments = np.array(called, np.int64) + self._clock.offset_ns
        last = np.searchsorted(moments, times, side="right") - 1
        began = np.where(last >= 0, moments[last], 0) if len(moments) else np.zeros(len(times), np.int64)
        return [places[one] if one >= 0 else None for one in last.tolist()], began
