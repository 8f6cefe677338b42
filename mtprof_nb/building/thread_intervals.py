"""Intervals of several threads: which of them ran inside which others of the same thread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mtprof_nb.model.intervals import by_thread, covered, crossing, innermost, nest_intervals, runs_of_equal
from mtprof_nb.model.trace import Bool, Int32, Int64

#: For so many threads it is faster to look for each one than to sort.
_FEW = 16


@dataclass(frozen=True)
class ThreadIntervals:
    """One row per interval. A mask chooses rows; the rows of a thread are compared with that thread's alone."""

    start: Int64
    end: Int64
    thread: Int32

    def __len__(self) -> int:
        return len(self.start)

    def by_thread(self, mask: Bool) -> list[Int64]:
        """The rows of `mask`, for each thread that has some, sorted by start, the longer first."""
        return [rows for rows, _, _ in by_thread(np.flatnonzero(mask), self.thread, self.start, self.end)]

    def _rows_of_threads(self, outers: list[Int64], threads: Int32) -> Iterator[tuple[Int64, Int64]]:
        """Pairs of the rows of one thread, an item of `outers`, and the positions of that thread in `threads`."""
        if len(outers) <= _FEW:
            yield from ((outer, np.flatnonzero(threads == self.thread[outer[0]])) for outer in outers)
            return
        here_of = {int(threads[run[0]]): run for run in runs_of_equal(threads)}
        nothing = np.empty(0, np.int64)
        yield from ((outer, here_of.get(int(self.thread[outer[0]]), nothing)) for outer in outers)

    def inside(self, mask: Bool) -> Bool:
        """Whether each row started while a row of `mask` was running (a row of `mask` counts itself)."""
        is_inside = mask.copy()
        for outer, here in self._rows_of_threads(self.by_thread(mask), self.thread):
            is_inside[here] |= covered(self.start[outer], self.end[outer], self.start[here])
        return is_inside

    def innermost(self, mask: Bool) -> Int64:
        """The last-starting row of `mask` that was running as each row started, or -1 (a row of `mask` is its own)."""
        return np.where(mask, np.arange(len(self)), self.running(mask, self.thread, self.start))

    def running(self, mask: Bool, threads: Int32, times: Int64) -> Int64:
        """The last-starting row of `mask` that was running at each of `times`, on its thread in `threads`, or -1."""
        row = np.full(len(times), -1, np.int64)
        for outer, here in self._rows_of_threads(self.by_thread(mask), threads):
            start, end = self.start[outer], self.end[outer]
            position = innermost(start, end, nest_intervals(start, end)[0], times[here])
            row[here] = np.where(position >= 0, outer[position], -1)
        return row

    def outermost(self, mask: Bool) -> Int64:
        """For each row of `mask` the outermost row of `mask` around it, which may be itself; -1 for all other rows."""
        row = np.full(len(self), -1, np.int64)
        for rows in self.by_thread(mask):
            ended = np.append(np.iinfo(np.int64).min, np.maximum.accumulate(self.end[rows])[:-1])
            is_outermost = self.start[rows] >= ended
            row[rows] = rows[is_outermost][np.cumsum(is_outermost) - 1]
        return row

    def spread(self, mask: Bool, chosen: Bool) -> Bool:
        """The rows of `mask` whose outermost row is chosen, or contains a chosen one."""
        outermost = self.outermost(mask)
        is_hit = np.zeros(len(self) + 1, np.bool_)
        is_hit[outermost[chosen & mask]] = True
        hit: Bool = is_hit[outermost]
        return hit

    def parents(self, mask: Bool) -> Int64:
        """For each row of `mask` the innermost other row of `mask` around it, or -1; -1 for all other rows."""
        parent = np.full(len(self), -1, np.int64)
        for rows in self.by_thread(mask):
            position, _ = nest_intervals(self.start[rows], self.end[rows])
            parent[rows] = np.where(position >= 0, rows[position], -1)
        return parent

    def crossing(self, mask: Bool) -> Bool:
        """The rows of `mask` that overlap another one of `mask`, where neither holds the other."""
        crosses = np.zeros(len(self), np.bool_)
        for rows in self.by_thread(mask):
            crosses[rows] = crossing(self.start[rows], self.end[rows])
        return crosses
