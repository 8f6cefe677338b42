"""Gaps between the ops of a thread: the time in which Python, or the profiler, prepared the next op."""

from __future__ import annotations

import numpy as np

from mtprof_nb.analysis.costs import counted_ops, op_costs
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.intervals import runs_of_equal
from mtprof_nb.model.trace import Int64, Trace

#: A longer gap between two ops is other work than calling the next op.
LONGEST_GAP_NS = 100_000


@once_a_trace
def gaps_before(trace: Trace) -> Int64:
    """For each op that no other op contains, the time since the last one of its thread ended; 0 for other events."""
    gaps, outer = gaps_around(trace)[0].copy(), outermost_ops(trace)
    gaps[outer[np.unique(trace.track[outer], return_index=True)[1]]] = 0
    return gaps


@once_a_trace
def gaps_around(trace: Trace) -> tuple[Int64, Int64]:
    """For each op that no other op contains, the gaps before and after it on its thread; 0 for other events.

    The gap before the first op of a thread begins with the program, and the one after the last ends with it.
    """
    before, after = np.zeros(len(trace), np.int64), np.zeros(len(trace), np.int64)
    outer = outermost_ops(trace)
    for run in runs_of_equal(trace.track[outer]):
        rows = outer[run]
        reached = np.maximum.accumulate(trace.end_ns[rows])
        edges = trace.began_ns + trace.own_ns, max(trace.ended_ns, int(reached[-1]))
        gaps = np.append(trace.start_ns[rows], edges[1]) - np.append(edges[0], reached)
        before[rows], after[rows] = np.maximum(gaps[:-1], 0), np.maximum(gaps[1:], 0)
    return before, after


def outermost_ops(trace: Trace) -> Int64:
    """Positions of the counted ops that no other op contains."""
    is_op = counted_ops(trace)
    parent = op_costs(trace).parent
    return np.flatnonzero(is_op & ~((parent >= 0) & is_op[parent]))
