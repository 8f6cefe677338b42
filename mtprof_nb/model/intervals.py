"""Intervals of one thread, in whole columns: which lies in which. Starts and ends are integers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from mtprof_nb.model.schema import Bool, Int32, Int64

#: So many steps from an interval to the one around it are made one by one.
_STEPS = 64
_MOST_DOUBLINGS = 64


def order_of(start_ns: Int64, duration_ns: Int64) -> Int64 | None:
    """Positions of intervals by start, the longer first, as a `Trace` promises; None if they are in that order.

    `duration_ns` may also be their ends.
    """
    if _is_ordered(start_ns, duration_ns):
        return None
    # Few begin at one moment, and what several recorders have each in order is merged.
    order = np.argsort(start_ns, kind="stable")
    is_ordered = _is_ordered(start_ns[order], duration_ns[order])
    return order if is_ordered else np.lexsort((-duration_ns, start_ns))


def _is_ordered(start_ns: Int64, duration_ns: Int64) -> bool:
    # Most begin later than the one before: the rest is looked at alone.
    before = np.flatnonzero(start_ns[1:] <= start_ns[:-1])
    is_same, longer = start_ns[before + 1] == start_ns[before], duration_ns[before + 1] > duration_ns[before]
    return bool(np.all(is_same & ~longer))


def nest_intervals(starts: Int64, ends: Int64) -> tuple[Int64, Int64]:
    """Parents (-1: none) and depths of intervals sorted by start, the longer first."""
    nested = nest_whole_columns(starts, ends)
    return nested if nested is not None else nest_one_by_one(starts, ends)


def number_until(moments: Int64, times: Int64) -> Int64:
    """How many of the sorted `moments` are not later than each of `times`."""
    if 2 * len(moments) > len(times) or np.any(times[1:] < times[:-1]):
        return np.searchsorted(moments, times, side="right")
    # Looking for the few among the many is faster, if the few are sorted too.
    first = np.searchsorted(times, moments, side="left")
    return np.cumsum(np.bincount(first, minlength=len(times) + 1)[:-1])


def innermost(starts: Int64, ends: Int64, parents: Int64, times: Int64) -> Int64:
    """For each of `times`, the last-starting interval that is open then, or -1.

    Intervals are sorted as for `nest_intervals`, which gave `parents`. An interval is open at its start, and
    closed at its end unless both are one moment.
    """
    if not len(starts):
        return np.full(len(times), -1, np.int64)
    rows = number_until(starts, times) - 1
    late = np.flatnonzero(rows >= 0)
    for _ in range(_STEPS):
        late = late[(ends[rows[late]] <= times[late]) & (starts[rows[late]] < times[late])]
        rows[late] = parents[rows[late]]
        late = late[rows[late] >= 0]
        if not len(late):
            return rows
    return _climbed(starts, ends, parents, times, rows, late)


def _climbed(starts: Int64, ends: Int64, parents: Int64, times: Int64, rows: Int64, late: Int64) -> Int64:
    """`rows`, in which entries at `late` become the nearest open interval around them, for very deep nesting.

    The intervals around one end later and later: doubled steps outwards find the first that is open.
    """
    jumps = [parents]
    while (jumps[-1] >= 0).any() and len(jumps) < _MOST_DOUBLINGS:
        above = jumps[-1]
        jumps.append(np.where(above >= 0, above[above], -1))
    late = late[(ends[rows[late]] <= times[late]) & (starts[rows[late]] < times[late])]
    for above in reversed(jumps):
        there = above[rows[late]]
        closed = (there >= 0) & (ends[there] <= times[late])
        rows[late[closed]] = there[closed]
    rows[late] = parents[rows[late]]
    return rows


def covered(starts: Int64, ends: Int64, times: Int64) -> Bool:
    """Whether each of `times` lies in any of the intervals (sorted by start; they may overlap)."""
    if not len(starts):
        return np.zeros(len(times), np.bool_)
    last = number_until(starts, times) - 1
    reached = np.maximum.accumulate(ends)
    inside: Bool = (last >= 0) & (times < reached[np.maximum(last, 0)])
    return inside


def covered_until(starts: Int64, ends: Int64, times: Int64) -> Int64:
    """How much of what came before each of `times` lies in the intervals (sorted by start; they may overlap)."""
    if not len(starts):
        return np.zeros(len(times), np.int64)
    begins, finishes = merged(starts, ends)
    before = np.cumsum(finishes - begins) - (finishes - begins)
    last = np.searchsorted(begins, times, side="right") - 1
    length = before[last] + np.minimum(times, finishes[last]) - begins[last]
    return np.where(last >= 0, length, 0)


def merged(starts: Int64, ends: Int64) -> tuple[Int64, Int64]:
    """Starts and ends of the union of the intervals (sorted by start): what overlaps or touches becomes one."""
    if not len(starts):
        return starts, ends
    reached = np.maximum.accumulate(ends)
    first = np.flatnonzero(np.append(True, starts[1:] > reached[:-1]))
    return starts[first], reached[np.append(first[1:], len(starts)) - 1]


def covered_length(starts: Int64, ends: Int64) -> int:
    """The length of the union of the intervals (sorted by start)."""
    begins, finishes = merged(starts, ends)
    return int((finishes - begins).sum())


def crossing(starts: Int64, ends: Int64) -> Bool:
    """Which of the intervals, sorted by start, the longer first, overlap another one and neither holds the other."""
    if nest_whole_columns(starts, ends) is not None:
        return np.zeros(len(starts), np.bool_)
    # One that begins inside an interval and ends behind it; one that ends inside it and begins before it.
    first, last = np.searchsorted(starts, starts, "right"), np.searchsorted(starts, ends, "left")
    crosses = -range_minima(-ends, first, last) > ends
    by_end = np.argsort(ends, kind="stable")
    first, last = np.searchsorted(ends[by_end], starts, "right"), np.searchsorted(ends[by_end], ends, "left")
    return crosses | (range_minima(starts[by_end], first, last) < starts)


def range_minima(values: Int64, first: Int64, last: Int64) -> Int64:
    """The least of `values` from each of `first` on, before each of `last`; the largest integer for an empty range."""
    least = np.full(len(first), np.iinfo(np.int64).max)
    length, power = last - first, 1
    minima = values
    while len(minima):
        # Minima of `power` values each: two of them, which may overlap, cover every range of this length.
        rows = np.flatnonzero((length >= power) & (length < 2 * power))
        least[rows] = np.minimum(minima[first[rows]], minima[last[rows] - power])
        minima = np.minimum(minima[:-power], minima[power:])
        power *= 2
    return least


def runs_of_equal(values: Int32 | Int64) -> list[Int64]:
    """Positions of equal values, those of the smallest value first; the positions of one value are in order."""
    # A sort of small integers is several times faster.
    order = np.argsort(values.astype(np.int16) if values.max(initial=0) < 2**15 else values, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(values[order])) + 1) if len(order) else []


def distinct_numbers(values: Int64) -> tuple[Int64, Int64]:
    """The distinct values, none of which is negative, in order, and for each of `values` its position among them."""
    # Counting is many times faster than sorting.
    size = int(values.max(initial=-1)) + 1
    if size > 4 * len(values) + 65_536:
        values_once, position = np.unique(values, return_inverse=True)
        return values_once, position
    values_once = np.flatnonzero(np.bincount(values, minlength=size))
    number = np.zeros(size, np.int64)
    number[values_once] = np.arange(len(values_once))
    return values_once, number[values]


def by_thread(chosen: Int64, threads: Int32, starts: Int64, ends: Int64) -> Iterator[tuple[Int64, Int64, Int64]]:
    """The positions `chosen` of each thread, with their starts and ends: sorted by start, the longer first."""
    own = threads[chosen]
    is_one = len(own) > 0 and bool(np.all(own == own[0]))
    for rows in [chosen] if is_one else (chosen[run] for run in runs_of_equal(own)):
        start, end = starts[rows], ends[rows]
        # Hooks record nearly all events in this order already.
        if (order := order_of(start, end)) is not None:
            rows, start, end = rows[order], start[order], end[order]
        yield rows, start, end


def nest_whole_columns(starts: Int64, ends: Int64) -> tuple[Int64, Int64] | None:
    """Local parents and depths of one thread's sorted intervals; None if some overlap without nesting."""
    count = len(starts)
    # An instant takes half a nanosecond here, so that it lies inside what starts with it.
    first, last = starts * 2, np.maximum(ends * 2, starts * 2 + 1)
    instants = np.flatnonzero((ends[1:] == starts[1:]) & (starts[1:] == starts[:-1]))
    if np.any(ends[instants] == ends[instants + 1]):
        return None
    # Ends come nearly in order: this sort is then several times faster than the default.
    depth = np.arange(count) - np.searchsorted(np.sort(last, kind="stable"), first, side="right")
    parent = np.full(count, -1, np.int64)
    for outer, inner in pairwise(runs_of_equal(depth)):
        parent[inner] = outer[np.searchsorted(outer, inner) - 1]
    held = parent >= 0
    if np.any(last[held] > last[parent[held]]) or np.any(first[held] >= last[parent[held]]):
        return None
    return parent, depth


def nest_one_by_one(starts: Int64, ends: Int64) -> tuple[Int64, Int64]:
    """Local parents and depths of intervals that may cross: one that outlives the open one is its sibling."""
    parent = np.full(len(starts), -1, np.int64)
    depth = np.zeros(len(starts), np.int64)
    end_of = ends.tolist()
    open_rows: list[int] = []
    for row, (start, end) in enumerate(zip(starts.tolist(), end_of, strict=True)):
        while open_rows and (start >= end_of[open_rows[-1]] or end > end_of[open_rows[-1]]):
            open_rows.pop()
        if open_rows:
            parent[row] = open_rows[-1]
            depth[row] = len(open_rows)
        open_rows.append(row)
    return parent, depth
