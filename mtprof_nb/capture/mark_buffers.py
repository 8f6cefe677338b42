"""Where marks go while the cell runs: a list a thread, filled from C alone, packed into arrays now and then."""

from __future__ import annotations

import builtins
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain, repeat, starmap
from typing import Any

import numpy as np

from mtprof_nb.capture.mark_costs import MarkCosts
from mtprof_nb.capture.marking import MARK
from mtprof_nb.source_files import is_user_file
from mtprof_nb.trace import Int64

#: Marks before the first packing, between two later ones, and before marking ends.
FIRST_PACKING = 1 << 9
PACKING = 1 << 16
MOST_MARKS = 1 << 22
#: Marks made to know what one costs.
_TRIALS = 32


def _taking(take: Callable[[Any], Any], **attributes: Any) -> Any:
    """An object whose subscription, read or deleted, is a call of the builtin `take` with what stands inside."""
    slots = {"__slots__": (), "__getitem__": take, "__delitem__": take}
    return type("Taking", (), slots | attributes)()


def idle_mark(opened: Callable[[int], Any]) -> Any:
    """Make the mark for the time in which nothing is recorded: marks left in running code do nothing."""
    mark = _taking(callable, __neg__=int, open=opened)
    type(mark).here = mark
    return mark


IDLE = idle_mark(callable)


@dataclass(frozen=True)
class ThreadMarks:
    """The marks of one thread in order of time: nanoseconds of `perf_counter_ns`, and numbers of places."""

    native_id: int
    time_ns: Int64
    number: Int64


@dataclass(eq=False)
class _Buffer:
    native_id: int = field(default_factory=threading.get_native_id)
    items: list[int] = field(default_factory=list)
    packed: list[Int64] = field(default_factory=list)

    def pack(self) -> None:
        """Other threads may append meanwhile, always a pair at once."""
        count = len(self.items)
        part = self.items[:count]
        del self.items[:count]
        self.packed.append(np.fromiter(part, np.int64, count).reshape(-1, 2))


class MarkBuffers:
    """The buffers of one recording, and `mark`, the object that marked code finds under the name `MARK`."""

    def __init__(self, opened: Callable[[int], Any], look: Callable[[Int64], None] | None = None) -> None:
        """`look` sees the marks of the cell's thread whenever they are packed."""
        self._buffers: list[_Buffer] = []
        self._look = look
        self._count = 0
        #: Why marking ended early, "" if it did not.
        self.note = ""
        self.began = clock_pair()
        self.ended: tuple[int, int] | None = None
        self.cell_thread = threading.get_native_id()
        #: When the profiler itself was at work on the cell's thread: first and last moment.
        self.own: list[tuple[int, int]] = []
        self.costs = MarkCosts()
        here = self._new_buffer()
        # When the times have run out the clock stands still; by then the idle mark has taken over.
        times = chain(chain.from_iterable(iter(self._next_times, None)), repeat(0))
        attributes = {
            "__neg__": times.__next__,
            "__delitem__": here.items.extend,
            "__getitem__": here.items.extend,
            "open": staticmethod(opened),
        }
        self.mark = type("Mark", (_ThreadSinks,), attributes)(self, here)

    def new_sink(self, buffer: _Buffer | None = None) -> Any:
        """Make `mark.here` for a thread that marks for the first time."""
        return _taking((buffer or self._new_buffer()).items.extend)

    def add(self, number: int) -> None:
        """A mark of this thread without the marks' own clock: it may be just what is being wound up."""
        self.mark.here[time.perf_counter_ns(), number]

    def stop(self) -> None:
        """Note the time; a second call does nothing."""
        self.ended = self.ended or clock_pair()

    def measure_costs(self) -> None:
        """Measure what a mark costs now."""
        self.costs.measure(lambda: MarkBuffers(callable))

    def threads(self) -> list[ThreadMarks]:
        """The marks made so far, by thread."""
        for buffer in self._buffers:
            buffer.pack()
        found = []
        for native_id in dict.fromkeys(buffer.native_id for buffer in self._buffers):
            parts = [part for buffer in self._buffers if buffer.native_id == native_id for part in buffer.packed]
            pairs = np.concatenate(parts)
            if np.any(np.diff(pairs[:, 0]) < 0):
                pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
            found.append(ThreadMarks(native_id, pairs[:, 0], pairs[:, 1]))
        return found

    def _new_buffer(self) -> _Buffer:
        buffer = _Buffer()
        self._buffers.append(buffer)
        return buffer

    def _next_times(self) -> Iterator[int] | None:
        """The clock for the next marks, or None after the last."""
        began_ns = time.perf_counter_ns()
        try:
            return self._packed_and_wound_up()
        finally:
            if threading.get_native_id() == self.cell_thread:
                self.own.append((began_ns, time.perf_counter_ns()))

    def _packed_and_wound_up(self) -> Iterator[int] | None:
        try:
            for buffer in self._buffers:
                buffer.pack()
            self._show_last_marks()
            is_cell_thread = threading.get_native_id() == self.cell_thread
            if self._count >= PACKING and self._look is not None and is_cell_thread:
                self.measure_costs()
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
        # Not `iter` with a sentinel, which compares each reading with it.
        return starmap(time.perf_counter_ns, repeat((), following))

    def _show_last_marks(self) -> None:
        if self._look is None or not self._count or threading.get_native_id() != self.cell_thread:
            return
        try:
            self._look(self._buffers[0].packed[-1])
        except Exception as error:
            # Nothing that goes wrong here may reach the user's code, in the middle of which we are; but what a handler
            # of a signal raises, as one that sets a time limit, is the user's own.
            self._look = None
            if _is_raised_by_user(error):
                raise

    def _give_up(self, note: str) -> None:
        self.note = note
        self.stop()
        if builtins.__dict__.get(MARK) is self.mark:
            builtins.__dict__[MARK] = IDLE


class _ThreadSinks(threading.local):
    """`here` is each thread's own."""

    def __init__(self, buffers: MarkBuffers, first: _Buffer) -> None:
        is_first = first.native_id == threading.get_native_id()
        self.here = buffers.new_sink(first if is_first else None)


def _is_raised_by_user(error: BaseException) -> bool:
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return place is not None and is_user_file(place.tb_frame.f_code.co_filename)


def cost_ns(marking: Callable[[MarkBuffers], Callable[[], Any]]) -> int:
    """The time from one mark to the next where nothing runs in between; `marking` gives what makes one."""
    buffers = MarkBuffers(callable)
    make = marking(buffers)
    for _ in range(_TRIALS):
        make()
    times = buffers.threads()[0].time_ns
    return int((times[1:] - times[:-1]).min())


def mark_cost_ns() -> int:
    """The time from one mark to the next, for marks in the code itself."""

    def marking(buffers: MarkBuffers) -> Callable[[], Any]:
        mark = buffers.mark
        return lambda: mark.here[-mark, 0]

    return cost_ns(marking)


def clock_pair() -> tuple[int, int]:
    """One moment on the monotonic clock and on the wall clock: of several readings the least disturbed."""
    best = (1 << 62, 0, 0)
    for _ in range(8):
        before, wall, after = time.perf_counter_ns(), time.time_ns(), time.perf_counter_ns()
        best = min(best, (after - before, (before + after) // 2, wall))
    return best[1:]
