"""`max_events` for a recorder that cannot count: Kineto's own memory tells how much it holds."""

from __future__ import annotations

import _thread
import ctypes
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from mtprof_nb.trace import Recorded

#: Bytes that Kineto keeps for one event while it records; more for shapes, and for its allocator's records.
_BYTES_AN_EVENT, _BYTES_OF_SHAPES, _BYTES_OF_MEMORY = 215, 385, 130
#: No event is recorded in less time than this.
_SECONDS_AN_EVENT = 0.3e-6
_PAUSE_S = 0.02
#: The user's memory comes and goes while Kineto's only grows: the smallest of so many readings is Kineto's.
_READINGS = 8


class _MallocInfo(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()  # noqa: SIM905
    )


def heap_bytes() -> Callable[[], int] | None:
    """A function that tells how many bytes of the C heap are in use, where the C library can say it."""
    try:
        mallinfo2 = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError):
        return None
    mallinfo2.restype = _MallocInfo
    return lambda: int(mallinfo2().uordblks)


class EventCap:
    """Watches a recording from a thread of its own and has the main thread call `finish` at about `max_events`."""

    def __init__(self, max_events: int, finish: Callable[[], Any], recorded: Recorded) -> None:
        self._max_events = max_events
        with_shapes = recorded.record_shapes or recorded.with_flops
        bytes_an_event = _BYTES_AN_EVENT + _BYTES_OF_SHAPES * with_shapes + _BYTES_OF_MEMORY * recorded.profile_memory
        self._most_bytes = max_events * bytes_an_event
        self._finish = finish
        self._pending: Any = None
        self._ended, self._finished = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    def start(self) -> None:
        """Begin to watch; nothing where the C library cannot tell."""
        heap = heap_bytes()
        if heap is None:
            return
        self._thread = threading.Thread(target=self._watch, args=(heap, heap()), name="mtprof event cap", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End watching. Raises what `finish` raised."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _watch(self, heap: Callable[[], int], before: int) -> None:
        soonest = self._max_events * _SECONDS_AN_EVENT
        if self._ended.wait(soonest):
            return
        readings: deque[int] = deque(maxlen=_READINGS)
        while not self._ended.wait(min(max(soonest / _READINGS, 0.005), 0.25)):
            readings.append(heap() - before)
            if len(readings) == _READINGS and min(readings) > self._most_bytes:
                self._call_in_main_thread()
                self._interrupt_again()
                return

    def _interrupt_again(self) -> None:
        """Pass on the user's interrupt of `finish`, a moment after it has returned to C."""
        while not self._finished.wait(_PAUSE_S):
            if self._ended.is_set():
                return
        if isinstance(self._failure, KeyboardInterrupt) and not self._ended.wait(_PAUSE_S):
            self._failure = None
            _thread.interrupt_main()

    def _call_in_main_thread(self) -> None:
        """Between two bytecodes of the main thread: Kineto can only be stopped where it was started."""

        def call(_: int | None) -> int:
            if not self._ended.is_set():
                try:
                    self._finish()
                # C, which calls this, can pass no exception on, and the user's own op would fail of it.
                except BaseException as error:
                    self._failure = error
            self._finished.set()
            return 0

        self._pending = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(call)
        ctypes.pythonapi.Py_AddPendingCall(self._pending, None)
