"""Ends a recording at its limit. Kineto cannot count events, so it watches the growth of the C heap instead."""

from __future__ import annotations

import _thread
import ctypes
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from mtprof_nb.capture.hook import full
from mtprof_nb.capture.interrupts import threads_without_signals
from mtprof_nb.capture.machine.available_memory import available_bytes
from mtprof_nb.capture.samples.python_stacks import is_in_folder
from mtprof_nb.capture.samples.thread_names import frames_of_others
from mtprof_nb.errors import warn
from mtprof_nb.model.trace import PYTHON, Recorded, Trace

#: Bytes that Kineto keeps for one event while it records; more for shapes, and for its allocator's records.
_BYTES_AN_EVENT, _BYTES_OF_SHAPES, _BYTES_OF_MEMORY = 215, 385, 130
_BYTES_A_CALL = 25
#: Memory of fewer events is no sign of a limit: a program of its own allocates as much. The rest is cut at the end.
_FEWEST = 100_000
#: The shortest time in which an event is recorded.
_SECONDS_AN_EVENT = 0.3e-6
_PAUSE_S = 0.02
#: The program's memory grows and shrinks while Kineto's only grows: the smallest of so many readings is Kineto's.
_READINGS = 8
#: How many readings suffice where memory runs short.
_LAST_READINGS = 4
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S, _READINGS_A_LOOK = 0.005, 0.05, 20
#: The bytes that the fastest recording comes to need in one second.
_NEEDED_A_SECOND = 16 << 30
#: How often the end is delayed because Python code of the runtime is running.
_MOST_DELAYS = 20
#: Measured bytes that the end of a recording takes for each byte that Kineto held while it recorded: without flags,
#: with shapes or memory, and with Python calls.
_GROWTH, _GROWTH_OF_FACTS, _GROWTH_OF_PYTHON = 9, 14, 95
#: The part of the available memory that the end of a recording may take; and the least that a new part may hold.
_SHARE, _SMALLEST_PART = 0.5, 4 << 20


class _MallocInfo(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()  # noqa: SIM905
    )


class Heap(NamedTuple):
    """Bytes of the C heap: in use, and free to be used again."""

    used: int
    free: int


def heap_reader() -> Callable[[], Heap] | None:
    """A function that reads the size of the C heap; None where the C library has none."""
    try:
        mallinfo2 = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError):
        return None
    mallinfo2.restype = _MallocInfo

    def read() -> Heap:
        found = mallinfo2()
        return Heap(int(found.uordblks), int(found.fordblks))

    return read


class Room:
    """Whether the available memory suffices for the end of a recording."""

    def __init__(self, recorded: Recorded, *, follows_python: bool) -> None:
        with_facts = recorded.record_shapes or recorded.with_flops or recorded.profile_memory
        self._growth = _GROWTH_OF_PYTHON if follows_python else _GROWTH_OF_FACTS if with_facts else _GROWTH
        self._available: int | None = None
        self._looks = 0

    def is_short(self, held: int, free: int) -> bool:
        """Whether the end of a recording that holds `held` bytes would take too much; `free` is of the heap."""
        needed = held * self._growth
        # Reading the available memory takes longer than reading the heap.
        if self._looks % _READINGS_A_LOOK == 0 or self._exceeds(needed * 2, free):
            self._available = available_bytes()
        self._looks += 1
        return self._exceeds(needed, free)

    def pause_s(self) -> float:
        """Seconds between two readings: the less memory there is, the shorter."""
        left = available_bytes()
        return _LONGEST_PAUSE_S if left is None else left * (1 - _SHARE) / _LAST_READINGS / _NEEDED_A_SECOND

    def for_another_part(self) -> bool:
        """Whether there is enough memory for a new part."""
        heap = heap_reader()
        self._looks = 0
        return heap is not None and not self.is_short(_SMALLEST_PART, heap().free)

    def _exceeds(self, needed: int, free: int) -> bool:
        # Half of the heap's free part may be in pieces that are too small.
        return self._available is not None and needed > (self._available + free // 2) * _SHARE


class EventCap:
    """Watches a recording from its own thread, and has the main thread call `finish` before it grows too large.

    It does so at about `max_events`, or where the end would take more memory than there is: then `is_short` is set.
    While code of `folder` runs the call is delayed, so that a scope of the runtime, such as an optimizer's step, is not
    cut.
    """

    def __init__(
        self, max_events: int, finish: Callable[[], Any], recorded: Recorded, room: Room, folder: str = "<none>"
    ) -> None:
        self._max_events = max(max_events, _FEWEST)
        with_shapes = recorded.record_shapes or recorded.with_flops
        bytes_an_event = _BYTES_AN_EVENT + _BYTES_OF_SHAPES * with_shapes + _BYTES_OF_MEMORY * recorded.profile_memory
        self._bytes_an_event = bytes_an_event
        self._grown = 0
        self._finish = finish
        self._room = room
        self._folder = folder
        self._delays = 0
        self.is_short = False
        self._ended, self._finished, self._answered = (threading.Event() for _ in range(3))
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    def start(self) -> None:
        """Begin to watch; does nothing where the C library does not tell the size of its heap."""
        heap = heap_reader()
        if heap is None:
            return
        watching = (heap, heap().used)
        thread = threading.Thread(target=self._watch, args=watching, name="mtprof event cap", daemon=True)
        try:
            with threads_without_signals():
                thread.start()
        except RuntimeError:
            warn(
                "the recording's memory is not watched, because the system has no thread left: "
                "end some threads, or record less"
            )
        else:
            self._thread = thread

    def stop(self) -> None:
        """End watching. Raises what `finish` raised."""
        self._ended.set()
        self._answered.set()
        if self._thread is not None:
            self._thread.join()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def was_mistaken(self, parts: Sequence[Trace]) -> bool:
        """Whether most of the heap's growth was the program's own, and not that of `parts`."""
        events, calls = sum(map(len, parts)), sum(int(np.count_nonzero(part.kind == PYTHON)) for part in parts)
        held = calls * _BYTES_A_CALL + (events - calls) * self._bytes_an_event
        return held * 2 < self._grown

    def _watch(self, heap: Callable[[], Heap], before: int) -> None:
        pause = min(self._max_events * _SECONDS_AN_EVENT / _READINGS, self._room.pause_s())
        pause = min(max(pause, _SHORTEST_PAUSE_S), _LONGEST_PAUSE_S)
        most_bytes = self._max_events * self._bytes_an_event
        readings: deque[int] = deque(maxlen=_READINGS)
        while not self._ended.wait(pause):
            now = heap()
            readings.append(now.used - before)
            self._grown = min(list(readings)[-_LAST_READINGS:])
            self.is_short = len(readings) >= _LAST_READINGS and self._room.is_short(self._grown, now.free)
            if self.is_short or (len(readings) == _READINGS and min(readings) > most_bytes):
                if not self._call_in_main_thread():
                    continue
                # Sleep until then: Kineto's Python tracer may be stopped and started meanwhile.
                self._answered.wait()
                if self._finished.is_set():
                    self._interrupt_again()
                    return
                self._answered.clear()

    def _interrupt_again(self) -> None:
        """Pass on the user's interrupt of `finish`, a moment after it has returned to C."""
        if isinstance(self._failure, KeyboardInterrupt) and not self._ended.wait(_PAUSE_S):
            self._failure = None
            _thread.interrupt_main()

    def _call_in_main_thread(self) -> bool:
        """Have the main thread end the recording between two bytecodes; False where it cannot be asked now.

        Kineto can only be stopped in the thread in which it was started.
        """
        # Python 3.11 loops for ever at a function's entry where a call waits while another one runs and is traced.
        if _is_answering(frames_of_others().get(threading.main_thread().ident or 0)):
            return False
        _WAITING.append(self)
        is_queued = int(ctypes.pythonapi.Py_AddPendingCall(_ANSWER, None)) == 0
        if not is_queued:  # the queue is full
            _WAITING.remove(self)
        return is_queued

    def answer(self) -> None:
        """End the recording in the main thread, or put it off."""
        if not self._should_be_delayed():
            if not self._ended.is_set():
                try:
                    self._finish()
                # C calls this: an exception would make the user's op fail.
                except BaseException as error:
                    self._failure = error
            self._finished.set()
        self._answered.set()

    def _should_be_delayed(self) -> bool:
        """Whether Python code of the runtime is running; False after many delays."""
        self._delays += 1
        frame: FrameType | None = sys._getframe()
        while frame is not None and self._delays <= _MOST_DELAYS:
            if is_in_folder(frame.f_code.co_filename, self._folder):
                return True
            frame = frame.f_back
        return False


#: The caps that wait for the main thread.
_WAITING: deque[EventCap] = deque()


def _answer_next(_: int | None) -> int:
    _WAITING.popleft().answer()
    return 0


#: Stays: the main thread may be in C for long, and call it when the recording has ended.
_ANSWER = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(_answer_next)


def _is_answering(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code is not _answer_next.__code__:
        frame = frame.f_back
    return frame is not None


def why_ended(most: int, count: int, cap: EventCap) -> str:
    """Why a recording ended with `count` events, for `Unrecorded`."""
    if cap.is_short:
        return "Kineto needs more memory to end a longer recording than is available; use fewer flags, or a schedule"
    if count < most:
        return f"memory use suggests that max_events={most:,} was reached; raise max_events"
    return full(most)


def warn_of_parts(trace: Trace, caps: Sequence[EventCap]) -> None:
    """Warn where a limit divided the recording, and did not end it."""
    if any(cap.is_short for cap in caps[:-1]):
        warn(
            f"recorded {len(trace):,} events in {len(caps)} parts, because Kineto needs more memory to end it at "
            "once than is available: links between parts, as from backward to forward, are missing, and a scope "
            "ends with its part; use fewer flags, or a schedule"
        )
