"""Nesting of events per thread: parents, depths and self times, computed on whole columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.intervals import in_nesting_order, nest_intervals
from mtprof_nb.model.trace import Bool, Int32, Int64, Trace


@dataclass(frozen=True, eq=False)
class Nesting:
    """`parent` and `depth` of each event of a trace, -1 for an event that does not nest."""

    parent: Int32
    depth: Int32
    #: Duration minus that of the direct children; never negative.
    self_ns: Int64

    def levels(self) -> list[Int64]:
        """Positions of the nested events by depth, the outermost first."""
        nested = np.flatnonzero(self.depth >= 0)
        depth = self.depth[nested]
        # Depths are small, and a sort of small integers is several times faster.
        order = np.argsort(depth.astype(np.int16) if depth.max(initial=0) < 2**15 else depth, kind="stable")
        edges = np.flatnonzero(np.diff(depth[order])) + 1
        return np.split(nested[order], edges) if len(nested) else []

    def subtree_sum(self, values: Int64) -> Int64:
        """For each event the sum of `values` over itself and all events nested in it."""
        total = np.array(values, np.int64)
        for level in reversed(self.levels()[1:]):
            np.add.at(total, self.parent[level], total[level])
        return total


@once_a_trace
def nesting(trace: Trace) -> Nesting:
    """The nesting of the events on threads: without kernels and asynchronous events."""
    return nest(trace, ~trace.on_device & ~trace.is_async)


def nest(trace: Trace, among: Bool) -> Nesting:
    """The nesting of the events in the mask `among`, as if the others were not there."""
    count = len(trace)
    parent = np.full(count, -1, np.int32)
    depth = np.full(count, -1, np.int32)
    chosen = np.flatnonzero(among)
    by_thread = chosen[np.argsort(trace.track[chosen], kind="stable")]
    edges = np.flatnonzero(np.diff(trace.track[by_thread])) + 1
    end_ns = trace.end_ns
    for rows in np.split(by_thread, edges) if len(by_thread) else ():
        starts, ends = trace.start_ns[rows], end_ns[rows]
        if not in_nesting_order(starts, ends):
            order = np.lexsort((-ends, starts))
            rows, starts, ends = rows[order], starts[order], ends[order]
        local, local_depth = nest_intervals(starts, ends)
        parent[rows] = np.where(local >= 0, rows[local], -1)
        depth[rows] = local_depth
    self_ns = np.where(among, trace.duration_ns, 0)
    inner = np.flatnonzero(parent >= 0)
    np.subtract.at(self_ns, parent[inner], trace.duration_ns[inner])
    return Nesting(parent, depth, np.maximum(self_ns, 0))
