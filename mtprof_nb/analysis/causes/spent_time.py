"""Time in which chosen ops ran, on the host and on devices."""

from __future__ import annotations

import numpy as np

from mtprof_nb.analysis.devices.kernel_owners import owners
from mtprof_nb.analysis.nesting import nesting
from mtprof_nb.model.intervals import covered_length, covered_until
from mtprof_nb.model.trace import Bool, Int64, Trace


def spent_ns(trace: Trace, chosen: Bool) -> int:
    """The time in which one of the chosen events ran on the host, or work on a device that one of them launched.

    Time in which several ran, on threads or on host and device, counts once: without them, the program cannot be
    shorter by more.
    """
    owner = owners(trace)
    launched = trace.is_device_work & (owner >= 0) & with_nested(trace, chosen)[owner]
    rows = np.flatnonzero(chosen | launched)
    return covered_length(trace.start_ns[rows], trace.end_ns[rows])


def apart_from(trace: Trace, events: Int64, start_ns: Int64, end_ns: Int64) -> Int64:
    """The time of each interval in which none of `events`, which are sorted, ran."""
    starts, ends = trace.start_ns[events], trace.end_ns[events]
    return end_ns - start_ns - (covered_until(starts, ends, end_ns) - covered_until(starts, ends, start_ns))


def with_nested(trace: Trace, chosen: Bool) -> Bool:
    """The chosen events, and all that are nested in them."""
    inside, nested = chosen.copy(), nesting(trace)
    for level in nested.levels()[1:]:
        inside[level] |= inside[nested.parent[level]]
    return inside


def with_backward(trace: Trace, chosen: Bool) -> Bool:
    """The chosen events with all nested in them, and what the backward pass ran for these."""
    inside = with_nested(trace, chosen)
    return inside | with_nested(trace, (trace.forward >= 0) & inside[trace.forward])
