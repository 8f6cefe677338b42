"""Who ran inside whom: parents, depths and self times, per thread, in whole columns at a time."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from weakref import WeakKeyDictionary

import numpy as np

from mtprof_nb.trace import KERNEL, Bool, Int32, Int64, Trace


@dataclass(frozen=True, eq=False)
class Nesting:
    """`parent` and `depth` of each event of a trace, -1 where an event takes no part in nesting."""

    parent: Int32
    depth: Int32
    #: Duration less that of the direct children; never negative.
    self_ns: Int64

    def subtree_sum(self, values: Int64) -> Int64:
        """For each event, the sum of `values` over itself and everything nested in it."""
        total = np.array(values, np.int64)
        deepest_first = np.argsort(-self.depth, kind="stable")
        inner = deepest_first[self.depth[deepest_first] > 0]
        edges = np.flatnonzero(np.diff(self.depth[inner])) + 1
        for level in np.split(inner, edges) if len(inner) else ():
            np.add.at(total, self.parent[level], total[level])
        return total


_of_trace: WeakKeyDictionary[Trace, Nesting] = WeakKeyDictionary()


def nesting(trace: Trace) -> Nesting:
    """The nesting of all events that ran on a thread: no kernels, nothing that ended on another thread."""
    found = _of_trace.get(trace)
    if found is None:
        found = _of_trace[trace] = nest(trace, (trace.kind != KERNEL) & ~trace.is_async)
    return found


def nest(trace: Trace, among: Bool) -> Nesting:
    """The nesting of the events in the mask `among`, as if the others were not there."""
    count = len(trace)
    parent = np.full(count, -1, np.int32)
    depth = np.full(count, -1, np.int32)
    chosen = np.flatnonzero(among)
    by_thread = chosen[np.argsort(trace.thread[chosen], kind="stable")]
    edges = np.flatnonzero(np.diff(trace.thread[by_thread])) + 1
    for rows in np.split(by_thread, edges) if len(by_thread) else ():
        starts, ends = trace.start_ns[rows], trace.end_ns[rows]
        order = np.lexsort((-ends, starts))
        rows, starts, ends = rows[order], starts[order], ends[order]
        nested = _nest_whole_columns(starts, ends)
        local, local_depth = nested if nested is not None else _nest_one_by_one(starts, ends)
        parent[rows] = np.where(local >= 0, rows[local], -1)
        depth[rows] = local_depth
    self_ns = np.where(among, trace.duration_ns, 0)
    inner = np.flatnonzero(parent >= 0)
    np.subtract.at(self_ns, parent[inner], trace.duration_ns[inner])
    return Nesting(parent, depth, np.maximum(self_ns, 0))


def _nest_whole_columns(starts: Int64, ends: Int64) -> tuple[Int64, Int64] | None:
    """Local parents and depths of one thread's sorted intervals; None if some overlap without nesting."""
    count = len(starts)
    # An instant takes half a nanosecond here, so that it lies inside what starts with it.
    first, last = starts * 2, np.maximum(ends * 2, starts * 2 + 1)
    if np.any((np.diff(first) == 0) & (np.diff(ends) == 0) & (ends[1:] == starts[1:])):
        return None
    depth = np.arange(count) - np.searchsorted(np.sort(last), first, side="right")
    parent = np.full(count, -1, np.int64)
    by_depth = np.argsort(depth, kind="stable")
    levels = np.split(by_depth, np.flatnonzero(np.diff(depth[by_depth])) + 1)
    for outer, inner in pairwise(levels):
        parent[inner] = outer[np.searchsorted(outer, inner) - 1]
    held = parent >= 0
    if np.any(last[held] > last[parent[held]]) or np.any(first[held] >= last[parent[held]]):
        return None
    return parent, depth


def _nest_one_by_one(starts: Int64, ends: Int64) -> tuple[Int64, Int64]:
    """The same for intervals that cross: one that outlives the open one is its sibling, not its child."""
    parent = np.full(len(starts), -1, np.int64)
    depth = np.zeros(len(starts), np.int64)
    open_rows: list[int] = []
    for row, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        while open_rows and (start >= ends[open_rows[-1]] or end > ends[open_rows[-1]]):
            open_rows.pop()
        if open_rows:
            parent[row] = open_rows[-1]
            depth[row] = len(open_rows)
        open_rows.append(row)
    return parent, depth
