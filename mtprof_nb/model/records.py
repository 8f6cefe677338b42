"""Records beside the events of a trace: samples of running code, garbage collections, the allocator's records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np
import numpy.typing as npt

from mtprof_nb.model.schema import (
    POINTS_TO_EVENT,
    TIMES,
    Absent,
    Bool,
    Int8,
    Int32,
    Int64,
    PointsInto,
    Record,
    Within,
    concatenated,
)

#: The thread was there; a call began or ended while its stack was read; the stack is that of the next call or loop.
AT_PLACE, MOVING, LATER = range(3)


class TimedRecord(Record):
    """Rows in order of time, which is the first column."""

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def take(self, rows: npt.ArrayLike) -> Self:
        """The rows at positions `rows`, or where it is true."""
        chosen = np.asarray(rows)
        return replace(self, **{name: column[chosen] for name, column in self.columns.items()})  # type: ignore[type-var]

    @classmethod
    def joined(cls, parts: Iterable[Self]) -> Self:
        """The rows of all parts in order of time; of one moment, those of the earlier part first."""
        columns = concatenated(cls, [vars(part) for part in parts])
        return cls(**columns).take(np.argsort(next(iter(columns.values())), kind="stable"))


@dataclass(frozen=True, eq=False)
class Samples(TimedRecord):
    """Stacks of threads in order of time. A moment at which several threads were looked at has a row for each."""

    #: The moment that the sample is about, Unix nanoseconds.
    time_ns: Annotated[Int64, TIMES]
    #: When the stack was read: later, if the sampler had to wait for the GIL.
    taken_ns: Annotated[Int64, TIMES]
    track: Annotated[Int32, PointsInto("tracks", always=True)]
    #: A node of `Trace.stacks`; -1 for code that stacks leave out.
    stack: Annotated[Int32, PointsInto("stacks")]
    #: Whether the thread was asleep: in `time.sleep`, for a lock, for input or for the GIL.
    is_waiting: Bool
    #: How long the thread had not been asleep, when the stack was read: from some moment of its own on, -1 if unknown.
    awake_ns: Annotated[Int64 | None, Absent(-1), TIMES] = None
    #: How long it had computed, without its waits for a processor, in the same way.
    computed_ns: Annotated[Int64 | None, Absent(-1), TIMES] = None
    #: How surely the thread was at this stack: `AT_PLACE`, `MOVING` or `LATER`. None: it was.
    certainty: Annotated[Int8 | None, Absent(0), Within(0, 3)] = None

    def with_late_waits(self) -> Samples:
        """Samples of one thread, awake during waits for a processor that were counted only after a sample.

        The system counts such a wait when it ends: until then the thread seems to sleep. No thread has slept for longer
        than it had at a later sample.
        """
        if self.awake_ns is None:
            return self
        least_ns = np.minimum.accumulate((self.taken_ns - self.awake_ns)[::-1])[::-1]
        return replace(self, awake_ns=np.where(self.awake_ns < 0, -1, self.taken_ns - least_ns))


@dataclass(frozen=True, eq=False)
class Collections(TimedRecord):
    """Runs of Python's garbage collector, in order of time. Ops, scopes and lines contain their time as before."""

    #: Unix nanoseconds.
    start_ns: Annotated[Int64, TIMES]
    duration_ns: Annotated[Int64, Within(0, TIMES.limit)]
    #: The oldest generation of objects that was looked at: 2 for all objects.
    generation: Annotated[Int8, Within(0, 3)]
    #: The thread that ran it, -1 if it has no other events.
    track: Annotated[Int32, PointsInto("tracks")]

    @property
    def end_ns(self) -> Int64:
        return self.start_ns + self.duration_ns


@dataclass(frozen=True, eq=False)
class Allocations(TimedRecord):
    """Allocator events in order of time: a release has negative `nbytes`."""

    time_ns: Annotated[Int64, TIMES]
    nbytes: Int64
    #: Bytes held on that device after the event, of those that were allocated in the same recording.
    total: Int64
    #: Identifies the block; 0 where the runtime does not report it.
    address: Int64
    #: The innermost event of the same thread during which it happened, or -1.
    event: Annotated[Int32, POINTS_TO_EVENT]
    track: Annotated[Int32, PointsInto("tracks")]
    device: Annotated[Int8, PointsInto("devices", always=True)]
    device_index: Int8
    #: Bytes the allocator had reserved of its device after the event; None where it reserves nothing.
    reserved: Int64 | None = None
    #: The stack that allocated outside any op, a node of `Trace.stacks`; -1 for all others.
    stack: Annotated[Int32 | None, PointsInto("stacks")] = None
