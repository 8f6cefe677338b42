"""Gaps between the ops of a thread: the time in which Python, or the profiler, prepared the next op."""

from __future__ import annotations

import numpy as np

from mtprof_nb.analysis.costs import counted_ops, op_costs
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.trace import Int64, Trace


@once_a_trace
def gaps_before(trace: Trace) -> Int64:
    """For each op that no other op contains, the time since the last one of its thread ended; 0 for other events."""
    gaps = np.zeros(len(trace), np.int64)
    outer = outermost_ops(trace)
    for track in set(trace.track[outer].tolist()):
        rows = outer[trace.track[outer] == track]
        reached = np.maximum.accumulate(trace.end_ns[rows])
        gaps[rows[1:]] = np.maximum(trace.start_ns[rows[1:]] - reached[:-1], 0)
    return gaps


def outermost_ops(trace: Trace) -> Int64:
    """Positions of the counted ops that no other op contains."""
    is_op = counted_ops(trace)
    parent = op_costs(trace).parent
    return np.flatnonzero(is_op & ~((parent >= 0) & is_op[parent]))
