"""How long a device was busy, and with which kind of work."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtprof_nb.model.intervals import covered_length
from mtprof_nb.model.trace import COLLECTIVE, COPY, KERNEL, SET, Int64, Trace


class BusyTime(NamedTuple):
    """Nanoseconds of a device. Computing, exposed communication, exposed copies and idle time sum up to the span."""

    #: From the start of the first kernel, copy, set or collective to the end of the last.
    span_ns: int
    #: Time in which any of these ran, on any stream.
    busy_ns: int
    #: Time in which a kernel or a set ran.
    computing_ns: int
    #: Time in which a collective ran, and neither a kernel nor a set.
    exposed_communication_ns: int
    #: Time in which a copy ran, and nothing else.
    exposed_copies_ns: int
    #: Time in which a collective ran.
    communication_ns: int
    #: Time in which a copy ran.
    copies_ns: int

    @property
    def idle_ns(self) -> int:
        """The rest of the span."""
        return self.span_ns - self.busy_ns

    @property
    def overlap(self) -> float | None:
        """The share of communication during which the device computed; None without communication."""
        if not self.communication_ns:
            return None
        return 1 - self.exposed_communication_ns / self.communication_ns


def busy_time(trace: Trace, work: Int64) -> BusyTime:
    """The times of the events at positions `work`, in order, which are those of one device or of one stream."""
    start, end, kind = trace.start_ns[work], trace.end_ns[work], trace.kind[work]

    def length(*kinds: int) -> int:
        """The time in which events of these kinds ran."""
        chosen = np.isin(kind, kinds)
        return covered_length(start[chosen], end[chosen])

    busy = covered_length(start, end)
    without_copies, computing = length(KERNEL, SET, COLLECTIVE), length(KERNEL, SET)
    return BusyTime(
        span_ns=int(end.max() - start[0]) if len(work) else 0,
        busy_ns=busy,
        computing_ns=computing,
        exposed_communication_ns=without_copies - computing,
        exposed_copies_ns=busy - without_copies,
        communication_ns=length(COLLECTIVE),
        copies_ns=length(COPY),
    )
