"""Buffers that a Python hook appends to while it records: flat lists for each thread, without a lock."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from typing import Any

from mtprof_nb.capture.hook import Request, SoFar
from mtprof_nb.capture.samples.python_stacks import StackEntry, Stacks
from mtprof_nb.model.trace import Recorded, Track

#: The values of every op, in the order in which a hook appends them to `ThreadRecords.ops`; more may follow.
OP_FIELDS = ("name", "device", "start", "end")
#: More values of an op, in this order, each with the flag that asks for it.
_FACT_FIELDS = {"stack": "with_stack", "shapes": "record_shapes", "flops": "with_flops", "module": "with_modules"}
SCOPE_FIELDS = ("name", "start", "end", "stack", "is_async", "node")


def fact_fields(recorded: Recorded) -> tuple[str, ...]:
    """The values of an op that the flags ask for, without its memory."""
    return tuple(field for field, flag in _FACT_FIELDS.items() if getattr(recorded, flag))


class ThreadRecords:
    """The records of one thread. Each list is flat: a fixed number of values for each record."""

    def __init__(self) -> None:
        ident = threading.get_ident()
        native = threading.get_native_id()
        # On a thread that Python did not start, `current_thread` would add a dummy thread for good.
        names = (thread.name for thread in threading.enumerate() if thread.ident == ident)
        self.track = Track(native, next(names, f"thread {native}"))
        self.ops: list[Any] = []
        self.scopes: list[Any] = []
        #: When the runtime's backward pass began and ended.
        self.backward: list[int] = []
        #: Identity of an autograd node, and when it was made.
        self.made: list[int] = []
        #: Identity of an autograd node, and when its backward began.
        self.ran: list[int] = []
        self.open_scopes: list[Scope] = []
        #: Scopes that the runtime's own `record_function` opened.
        self.runtime_scopes: list[Scope] = []
        #: Paths of the modules whose forward is running, the innermost last.
        self.modules: list[tuple[Any, str]] = []


class _Local(threading.local):
    """The calling thread's records, and its most used lists."""

    def __init__(self, threads: list[ThreadRecords]) -> None:
        self.records = ThreadRecords()
        self.ops = self.records.ops
        self.made = self.records.made
        self.ran = self.records.ran
        threads.append(self.records)


class Buffer:
    """All records of one window. Times are `time.perf_counter_ns()`."""

    def __init__(self, request: Request, fields: tuple[str, ...] = OP_FIELDS) -> None:
        self.request = request
        self.fields = fields
        self.threads: list[ThreadRecords] = []
        self.local = _Local(self.threads)
        self.stacks = Stacks() if request.recorded.with_stack else None
        #: The next event's number, from 1; an event whose number is beyond `limit` is not recorded.
        self.limit = request.max_events
        beyond = map(self._beyond, itertools.count(self.limit + 1))
        self.number = itertools.chain(range(1, self.limit + 1), beyond).__next__
        #: When the first event was not recorded; 0 while all are.
        self.full_ns = 0
        self.is_open = True
        self.began = time.perf_counter_ns()
        self.ended = self.began

    def _beyond(self, number: int) -> int:
        self.leave_out(time.perf_counter_ns())
        return number

    def leave_out(self, start: int) -> None:
        """Note that an event which began at `start` is not recorded."""
        self.full_ns = min(start, self.full_ns or start)

    def so_far(self) -> SoFar | None:
        """For a hook's `so_far`: when the buffer was full, None before."""
        return SoFar((), (), full_ns=self.full_ns) if self.full_ns else None

    def scope(self, name: str) -> Scope:
        """A context manager that records a scope; it does nothing once the buffer is closed."""
        return Scope(self, name)

    def close(self) -> int:
        """Accept no more events; returns how many were dropped because of `max_events`."""
        self.is_open = False
        self.ended = time.perf_counter_ns()
        full_ns, dropped = self.full_ns, max(self.number() - 1 - self.limit, 0)
        self.full_ns = full_ns
        return dropped

    def discard(self) -> None:
        """Accept no more events, and drop those that there are."""
        self.is_open = False
        self.threads.clear()


class Scope:
    """One named scope of the user's or a library's code."""

    __slots__ = ("_buffer", "_records", "_stack", "_start", "name", "node")

    def __init__(self, buffer: Buffer, name: str) -> None:
        self._buffer = buffer
        self._records: ThreadRecords | None = None
        self._stack: StackEntry | None = None
        self._start = 0
        self.name = name
        #: The autograd node that was running as the scope began, as a hook's field `node` has it; -1 for none.
        self.node = -1

    def __enter__(self) -> Scope:
        buffer = self._buffer
        if buffer.is_open and buffer.number() <= buffer.limit:
            self._records = buffer.local.records
            if buffer.stacks is not None:
                self._stack = buffer.stacks.capture(sys._getframe(1))
            self._records.open_scopes.append(self)
            self._start = time.perf_counter_ns()
        return self

    def __exit__(self, *exception: object) -> None:
        records, self._records = self._records, None
        if records is None:
            return
        end = time.perf_counter_ns()
        # A scope that ends on another thread nests in neither thread.
        ends_elsewhere = threading.get_native_id() != records.track.native_id
        records.scopes.extend(self.record(end, ends_elsewhere))
        if self in records.open_scopes:
            records.open_scopes.remove(self)

    def record(self, end: int, is_async: bool) -> tuple[Any, ...]:
        """The scope's values in the order of `SCOPE_FIELDS`."""
        return self.name, self._start, end, self._stack, is_async, self.node
