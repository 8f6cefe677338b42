"""Nesting of events per thread: parents, depths and self times, computed on whole columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.intervals import by_thread, nest_intervals, runs_of_equal
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
        return [nested[level] for level in runs_of_equal(self.depth[nested])]

    def subtree_sum(self, values: Int64) -> Int64:
        """For each event the sum of `values` over itself and all events nested in it."""
        total = np.array(values, np.int64)
        for level in reversed(self.levels()[1:]):
            np.add.at(total, self.parent[level], total[level])
        return total


def is_among(trace: Trace, positions: npt.ArrayLike) -> Bool:
    """Which events are at one of these positions; -1 is no position."""
    among = np.zeros(len(trace) + 1, np.bool_)
    among[np.asarray(positions, np.int64)] = True
    return among[:-1]


@once_a_trace
def nesting(trace: Trace) -> Nesting:
    """The nesting of the events on threads: without kernels and asynchronous events."""
    return nest(trace, ~trace.on_device & ~trace.is_async)


def nest(trace: Trace, among: Bool) -> Nesting:
    """The nesting of the events in the mask `among`, as if the others were not there."""
    count = len(trace)
    parent = np.full(count, -1, np.int32)
    depth = np.full(count, -1, np.int32)
    for rows, starts, ends in by_thread(np.flatnonzero(among), trace.track, trace.start_ns, trace.end_ns):
        local, local_depth = nest_intervals(starts, ends)
        parent[rows] = np.where(local >= 0, rows[local], -1)
        depth[rows] = local_depth
    self_ns = np.where(among, trace.duration_ns, 0)
    inner = np.flatnonzero(parent >= 0)
    np.subtract.at(self_ns, parent[inner], trace.duration_ns[inner])
    return Nesting(parent, depth, np.maximum(self_ns, 0))
