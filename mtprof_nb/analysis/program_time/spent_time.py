"""Time in which chosen ops ran, on the host and on devices."""

from __future__ import annotations

import numpy as np

from mtprof_nb.analysis.costs import op_costs
from mtprof_nb.analysis.devices.kernel_owners import kernel_owners
from mtprof_nb.analysis.nesting import nesting
from mtprof_nb.analysis.program_time.gaps import LONGEST_GAP_NS, gaps_around, outermost_ops
from mtprof_nb.analysis.program_time.recording_cost import recording_ns
from mtprof_nb.model.intervals import covered, covered_length, covered_until, runs_of_equal
from mtprof_nb.model.trace import BACKWARD, Bool, Int32, Int64, Trace

#: Adds up the gradient of a parameter: a node of the backward pass without an op of the forward pass.
ADDS_UP = "AccumulateGrad"


def spent_ns(trace: Trace, chosen: Bool) -> int:
    """The time in which one of the chosen events ran on the host, or work on a device that one of them launched.

    Time in which several ran, on threads or on host and device, counts once: without them, the program cannot be
    shorter by more.
    """
    rows = np.flatnonzero(_with_work(trace, chosen))
    return covered_length(trace.start_ns[rows], trace.end_ns[rows])


def saved_ns(trace: Trace, chosen: Bool, passes: tuple[Int64, Int64] | None = None) -> int:
    """The time that a program that is not recorded saves at most if it does not run the chosen events.

    `passes` are the starts and ends of times that go as a whole.

    With an op goes the gap before it, in which Python or the engine of autograd came to it, and the gap after it, in
    which what it made was released. Of a longer gap than Python needs to call an op, only as much goes as the op took:
    memory is released in less time than it is made. Between nodes of the backward pass, all of the gap is the engine's.
    """
    rows, (before_ns, after_ns) = np.flatnonzero(_with_work(trace, chosen)), gaps_around(trace)
    most_ns = np.maximum(trace.duration_ns[rows], LONGEST_GAP_NS)
    of_engine = (trace.phase[rows] == BACKWARD) & (trace.forward[rows] >= 0)
    start_ns = trace.start_ns[rows] - np.where(of_engine, before_ns[rows], np.minimum(before_ns[rows], most_ns))
    end_ns = trace.end_ns[rows] + np.minimum(after_ns[rows], most_ns)
    if passes is not None:
        start_ns, end_ns = np.append(start_ns, passes[0]), np.append(end_ns, passes[1])
        chosen = chosen | covered(*passes, trace.start_ns)
    order = np.argsort(start_ns, kind="stable")
    return max(covered_length(start_ns[order], end_ns[order]) - recording_ns(trace, with_nested(trace, chosen)), 0)


def _with_work(trace: Trace, chosen: Bool) -> Bool:
    """The chosen events, and the work on devices that these or events nested in them launched."""
    owner = kernel_owners(trace)
    launched: Bool = trace.is_device_work & (owner >= 0) & with_nested(trace, chosen)[owner]
    return chosen | launched


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


def with_callers(trace: Trace, events: Int32) -> Bool:
    """These events, and the ops around them; -1 is no event."""
    inside, parent = np.zeros(len(trace), np.bool_), op_costs(trace).parent
    while len(events := np.unique(events[events >= 0])):
        inside[events] = True
        events = parent[events]
    return inside


def with_backward(trace: Trace, chosen: Bool) -> Bool:
    """The chosen events, all events nested in them, and what the backward pass ran for any of these.

    A node that adds up the gradient of a parameter has no forward pass: it belongs to the node that ran before it.
    """
    inside = with_nested(trace, chosen)
    inside |= with_nested(trace, (trace.forward >= 0) & inside[trace.forward])
    outer, adds = outermost_ops(trace), trace.where_name(lambda name: ADDS_UP in name)
    for run in runs_of_equal(trace.track[outer]):
        rows = outer[run]
        last = np.maximum.accumulate(np.where(adds[rows], 0, np.arange(len(rows))))
        inside[rows] |= adds[rows] & inside[rows[last]]
    return inside
