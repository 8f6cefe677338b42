"""Interval arithmetic against a plain loop, and its edges by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtprof_nb.model.intervals import (
    covered,
    covered_length,
    covered_until,
    crossing,
    distinct_numbers,
    innermost,
    merged,
    nest_intervals,
    nest_one_by_one,
    nest_whole_columns,
    number_until,
    range_minima,
)


def sorted_intervals(pairs):
    pairs = sorted(pairs, key=lambda pair: (pair[0], -pair[1]))
    return np.array([a for a, _ in pairs], np.int64), np.array([b for _, b in pairs], np.int64)


intervals = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)).map(lambda p: (p[0], p[0] + p[1])), max_size=25)


@given(intervals)
def test_the_fast_way_agrees_with_the_loop_wherever_it_answers(pairs):
    starts, ends = sorted_intervals(pairs)
    fast = nest_whole_columns(starts, ends)
    slow = nest_one_by_one(starts, ends)
    if fast is not None:
        assert fast[0].tolist() == slow[0].tolist()
        assert fast[1].tolist() == slow[1].tolist()


@given(intervals, st.lists(st.integers(-2, 45), max_size=10))
def test_covered_says_whether_any_interval_holds_the_moment(pairs, times):
    starts, ends = sorted_intervals(pairs)
    expected = [any(a <= t < b for a, b in pairs) for t in times]
    assert covered(starts, ends, np.array(times, np.int64)).tolist() == expected


@given(intervals, st.lists(st.integers(-2, 45), max_size=10))
def test_covered_until_counts_each_moment_before_once(pairs, times):
    starts, ends = sorted_intervals(pairs)
    expected = [sum(any(a <= moment < b for a, b in pairs) for moment in range(-2, time)) for time in times]
    assert covered_until(starts, ends, np.array(times, np.int64)).tolist() == expected


@given(st.lists(st.integers(0, 9), max_size=12), st.lists(st.integers(-2, 12), max_size=30), st.booleans())
def test_moments_until_a_time_are_counted_in_any_order_of_times(moments, times, is_sorted):
    moments, times = np.array(sorted(moments), np.int64), np.array(sorted(times) if is_sorted else times, np.int64)
    assert number_until(moments, times).tolist() == [int((moments <= time).sum()) for time in times]


def test_the_innermost_open_interval_is_found_after_its_children_closed():
    starts, ends = sorted_intervals([(0, 100), (10, 20), (12, 15), (40, 60)])
    parents, _ = nest_intervals(starts, ends)
    times = np.array([-1, 5, 13, 17, 30, 40, 59, 60, 100])
    assert innermost(starts, ends, parents, times).tolist() == [-1, 0, 2, 1, 0, 3, 3, 0, -1]


@given(st.integers(1, 200), st.lists(st.integers(-2, 420), max_size=10))
def test_the_innermost_open_interval_is_found_in_very_deep_nesting(depth, times):
    starts, ends = sorted_intervals([(level, 2 * depth - level) for level in range(depth)])
    parents, _ = nest_intervals(starts, ends)
    expected = [
        max((level for level in range(depth) if starts[level] <= time < ends[level]), default=-1) for time in times
    ]
    assert innermost(starts, ends, parents, np.array(times, np.int64)).tolist() == expected


@given(st.lists(st.integers(-9, 9), max_size=40), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40))))
def test_the_least_value_of_any_range_is_found(values, ranges):
    ranges = [(min(first, len(values)), min(first + length, len(values))) for first, length in ranges]
    first, last = np.array(ranges, np.int64).reshape(-1, 2).T
    expected = [min(values[a:b], default=2**63 - 1) for a, b in ranges]
    assert range_minima(np.array(values, np.int64), first, last).tolist() == expected


def test_an_instant_lies_in_what_starts_with_it_and_not_in_what_ends_with_it():
    starts, ends = sorted_intervals([(0, 10), (0, 0), (10, 10)])
    parents, depths = nest_intervals(starts, ends)
    assert parents.tolist() == [-1, 0, -1]
    assert depths.tolist() == [0, 1, 0]


def test_an_interval_that_outlives_the_open_one_is_its_sibling():
    starts, ends = sorted_intervals([(0, 10), (5, 15), (6, 8)])
    assert nest_intervals(starts, ends)[0].tolist() == [-1, -1, 1]


@given(intervals)
def test_intervals_cross_where_they_overlap_and_neither_holds_the_other(pairs):
    starts, ends = sorted_intervals(pairs)
    rows = list(zip(starts.tolist(), ends.tolist(), strict=True))
    expected = [any(a < c < b < d or c < a < d < b for c, d in rows) for a, b in rows]
    assert crossing(starts, ends).tolist() == expected


@given(intervals)
def test_merged_intervals_cover_each_moment_once_and_do_not_touch(pairs):
    starts, ends = sorted_intervals(pairs)
    begins, finishes = merged(starts, ends)

    assert covered_length(starts, ends) == len({moment for a, b in pairs for moment in range(a, b)})
    assert np.all(begins[1:] > finishes[:-1])


@pytest.mark.parametrize("values", [[], [3, 0, 3], [7], [10**12, 2, 10**12]])
def test_distinct_values_and_their_positions(values: list[int]) -> None:
    found, position = distinct_numbers(np.array(values, np.int64))
    assert found.tolist() == sorted(set(values))
    assert found[position].tolist() == values
