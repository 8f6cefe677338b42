"""Time in which chosen ops ran, on the host and on devices."""

from __future__ import annotations

import numpy as np

from mtprof_nb.analysis.devices.kernel_owners import owners
from mtprof_nb.analysis.nesting import nesting
from mtprof_nb.model.intervals import covered_length
from mtprof_nb.model.trace import Bool, Trace


def spent_ns(trace: Trace, chosen: Bool) -> int:
    """The time in which one of the chosen events ran on the host, or work on a device that one of them launched.

    Time in which several ran, on threads or on host and device, counts once: without them, the program cannot be
    shorter by more.
    """
    owner = owners(trace)
    launched = trace.is_device_work & (owner >= 0) & with_nested(trace, chosen)[owner]
    rows = np.flatnonzero(chosen | launched)
    return covered_length(trace.start_ns[rows], trace.end_ns[rows])


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
