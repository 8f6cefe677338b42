"""Buffers of marks while the cell runs: one list per thread, filled from C alone, packed into arrays now and then."""

from __future__ import annotations

import builtins
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain, repeat, starmap
from typing import Any

import numpy as np

from mtprof_nb.capture.marks.mark_costs import MarkCosts
from mtprof_nb.capture.marks.mark_transform import MARK
from mtprof_nb.model.source_files import is_user_file
from mtprof_nb.model.trace import Int32, Int64

#: Marks before the first packing, between two later ones, and before marking ends.
FIRST_PACKING = 1 << 9
PACKING = 1 << 16
MOST_MARKS = 1 << 22
#: Marks made to know what one costs.
_TRIALS = 32


def _subscriptable(call: Callable[[Any], Any], **attributes: Any) -> Any:
    """An object `obj` for which `obj[x]` and `del obj[x]` both call the builtin `call` with x."""
    slots = {"__slots__": (), "__getitem__": call, "__delitem__": call}
    return type("Subscriptable", (), slots | attributes)()


def idle_mark(opened: Callable[[int], Any]) -> Any:
    """A mark that does nothing, for code that runs on after its recording."""
    mark = _subscriptable(callable, __neg__=int, open=opened)
    type(mark).here = mark
    return mark


IDLE = idle_mark(callable)


@dataclass(frozen=True)
class ThreadMarks:
    """The marks of one thread in order of time: nanoseconds of `perf_counter_ns`, and numbers of places."""

    native_id: int
    time_ns: Int64
    number: Int64 | Int32


@dataclass(eq=False)
class _Buffer:
    native_id: int = field(default_factory=threading.get_native_id)
    items: list[int] = field(default_factory=list)
    packed: list[Int64] = field(default_factory=list)

    def pack(self) -> None:
        """Move the marks so far into an array. Other threads may append meanwhile, always a pair at once."""
        count = len(self.items)
        part = self.items[:count]
        del self.items[:count]
        self.packed.append(np.fromiter(part, np.int64, count).reshape(-1, 2))


class MarkBuffers:
    """The buffers of one recording, and `mark`, the object that marked code finds under the name `MARK`."""

    def __init__(self, opened: Callable[[int], Any], look: Callable[[Int64], None] | None = None) -> None:
        """`look` is given the marks of the cell's thread whenever they are packed."""
        self._buffers: list[_Buffer] = []
        self._look = look
        self._count = 0
        #: Why marking ended early, "" if it did not.
        self.note = ""
        #: When marking ended, by `perf_counter_ns`; None before.
        self.ended_ns: int | None = None
        self.cell_thread = threading.get_native_id()
        #: Intervals in which the profiler itself ran on the cell's thread.
        self.own: list[tuple[int, int]] = []
        self.costs = MarkCosts()
        here = self._new_buffer()
        # After the last reading the clock gives 0; by then the idle mark is in place.
        times = chain(chain.from_iterable(iter(self._next_times, None)), repeat(0))
        attributes = {
            "__neg__": times.__next__,
            "__delitem__": here.items.extend,
            "__getitem__": here.items.extend,
            "open": staticmethod(opened),
        }
        self.mark = type("Mark", (_ThreadSinks,), attributes)(self, here)

    def new_sink(self, buffer: _Buffer | None = None) -> Any:
        """The `mark.here` of a thread that makes its first mark."""
        return _subscriptable((buffer or self._new_buffer()).items.extend)

    def stop(self) -> None:
        """Note when marking ended; a second call does nothing."""
        self.ended_ns = self.ended_ns or time.perf_counter_ns()

    def measure_costs(self) -> None:
        self.costs.measure(lambda: MarkBuffers(callable))

    def threads(self) -> list[ThreadMarks]:
        """The marks made so far, by thread."""
        for buffer in self._buffers:
            buffer.pack()
        threads = []
        for native_id in dict.fromkeys(buffer.native_id for buffer in self._buffers):
            parts = [part for buffer in self._buffers if buffer.native_id == native_id for part in buffer.packed]
            pairs = np.concatenate(parts)
            if np.any(np.diff(pairs[:, 0]) < 0):
                pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
            threads.append(ThreadMarks(native_id, pairs[:, 0], pairs[:, 1]))
        return threads

    def _new_buffer(self) -> _Buffer:
        buffer = _Buffer()
        self._buffers.append(buffer)
        return buffer

    def _next_times(self) -> Iterator[int] | None:
        """The clock for the next marks, or None after the last."""
        began_ns = time.perf_counter_ns()
        try:
            return self._pack_and_go_on()
        finally:
            if threading.get_native_id() == self.cell_thread:
                self.own.append((began_ns, time.perf_counter_ns()))

    def _pack_and_go_on(self) -> Iterator[int] | None:
        try:
            for buffer in self._buffers:
                buffer.pack()
            # On the cell's thread alone: costs are not measured on two threads at once.
            if threading.get_native_id() == self.cell_thread and self._count:
                self._show_last_marks()
        except BaseException as error:
            self._give_up("marking was interrupted: later lines are not marked")
            if isinstance(error, Exception) and not _is_raised_by_user(error):
                return None  # a failure of our own must not reach the user's statement
            raise
        if self._count >= MOST_MARKS:
            self._give_up(f"more than {MOST_MARKS:,} statements ran: later lines are not marked")
            return None
        following = min(max(self._count, FIRST_PACKING), PACKING)
        self._count += following
        # `iter` with a sentinel would compare each reading with it.
        return starmap(time.perf_counter_ns, repeat((), following))

    def _show_last_marks(self) -> None:
        if self._look is None:
            return
        if self._count >= PACKING:
            self.measure_costs()
        try:
            self._look(self._buffers[0].packed[-1])
        except Exception as error:
            # A failure here must not reach the user's code, which is in the middle of a statement. But an exception of
            # the user's own signal handler, such as a time limit, must.
            self._look = None
            if _is_raised_by_user(error):
                raise

    def _give_up(self, note: str) -> None:
        self.note = note
        self.stop()
        if builtins.__dict__.get(MARK) is self.mark:
            builtins.__dict__[MARK] = IDLE


class _ThreadSinks(threading.local):
    """Holds `here`, the object that takes the marks of the calling thread."""

    def __init__(self, buffers: MarkBuffers, first: _Buffer) -> None:
        is_first = first.native_id == threading.get_native_id()
        self.here = buffers.new_sink(first if is_first else None)


def _is_raised_by_user(error: BaseException) -> bool:
    innermost = error.__traceback__
    while innermost is not None and innermost.tb_next is not None:
        innermost = innermost.tb_next
    return innermost is not None and is_user_file(innermost.tb_frame.f_code.co_filename)


def mark_cost_ns() -> int:
    """The gap between two marks in the code where nothing runs in between."""
    buffers = MarkBuffers(callable)
    mark = buffers.mark
    for _ in range(_TRIALS):
        mark.here[-mark, 0]
    times = buffers.threads()[0].time_ns
    return int((times[1:] - times[:-1]).min())
