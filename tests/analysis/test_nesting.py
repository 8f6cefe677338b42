"""Who ran inside whom, on hand-made traces and beside a plain loop."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from traces import event, make_trace

from mtprof_nb.analysis.children import children, launched
from mtprof_nb.analysis.nesting import nest, nesting
from mtprof_nb.model.trace import empty_trace


def by_name(trace, values):
    return {trace.names[name]: value for name, value in zip(trace.name.tolist(), values.tolist(), strict=True)}


def parents(trace):
    found = nesting(trace).parent.tolist()
    names = [trace.names[name] for name in trace.name]
    return {name: names[parent] if parent >= 0 else None for name, parent in zip(names, found, strict=True)}


def test_an_event_is_the_child_of_the_innermost_event_around_it():
    trace = make_trace([event("step", 0, 100), event("mm", 10, 60), event("copy", 20, 30), event("add", 60, 80)])

    assert parents(trace) == {"step": None, "mm": "step", "copy": "mm", "add": "step"}
    assert by_name(trace, nesting(trace).depth) == {"step": 0, "mm": 1, "copy": 2, "add": 1}
    assert by_name(trace, nesting(trace).self_ns) == {"step": 30, "mm": 40, "copy": 10, "add": 20}


def test_threads_do_not_nest_in_one_another():
    trace = make_trace([event("main", 0, 100, thread=1), event("worker", 10, 20, thread=2)])

    assert parents(trace) == {"main": None, "worker": None}
    assert by_name(trace, nesting(trace).self_ns) == {"main": 100, "worker": 10}


def test_kernels_and_what_ended_on_another_thread_take_no_part():
    trace = make_trace(
        [
            event("op", 0, 100),
            event("kernel", 10, 20, kind="kernel", device="CUDA"),
            event("async", 10, 20, is_async=True),
        ]
    )

    assert by_name(trace, nesting(trace).depth) == {"op": 0, "kernel": -1, "async": -1}
    assert by_name(trace, nesting(trace).self_ns) == {"op": 100, "kernel": 0, "async": 0}


def test_an_event_that_outlives_the_one_it_began_in_is_its_sibling():
    trace = make_trace([event("outer", 0, 100), event("enter", 10, 20), event("scope", 15, 90), event("op", 16, 18)])

    assert parents(trace) == {"outer": None, "enter": "outer", "scope": "outer", "op": "scope"}


def test_self_time_is_never_negative_where_children_overlap():
    trace = make_trace([event("outer", 0, 10), event("left", 0, 9), event("right", 1, 10)])

    assert by_name(trace, nesting(trace).self_ns) == {"outer": 0, "left": 9, "right": 9}


def test_of_two_equal_intervals_the_first_is_the_parent():
    trace = make_trace([event("first", 5, 10), event("second", 5, 10)])

    assert parents(trace) == {"first": None, "second": "first"}


def test_an_instant_lies_in_what_starts_with_it_and_not_in_what_ends_with_it():
    trace = make_trace([event("before", 0, 5), event("after", 5, 10), event("instant", 5, 5)])

    assert parents(trace) == {"before": None, "after": None, "instant": "after"}


def test_events_outside_of_the_mask_are_as_if_not_there():
    trace = make_trace([event("a", 0, 10), event("b", 1, 9), event("c", 2, 8)])

    nested = nest(trace, np.array([True, False, True]))

    assert nested.parent.tolist() == [-1, -1, 0]
    assert nested.depth.tolist() == [0, -1, 1]
    assert nested.self_ns.tolist() == [4, 0, 6]


def test_a_subtree_sums_everything_below():
    trace = make_trace([event("a", 0, 10), event("b", 1, 9), event("c", 2, 8), event("d", 20, 30)])

    assert nesting(trace).subtree_sum(np.array([1, 10, 100, 1000])).tolist() == [111, 110, 100, 1000]


def test_levels_go_from_the_outermost_inwards():
    trace = make_trace([event("a", 0, 10), event("b", 1, 9), event("c", 2, 8), event("d", 20, 30)])

    assert [level.tolist() for level in nesting(trace).levels()] == [[0, 3], [1], [2]]


def test_an_empty_trace_has_an_empty_nesting():
    nested = nesting(empty_trace())

    assert len(nested.parent) == len(nested.self_ns) == 0
    assert nested.levels() == []
    assert nested.subtree_sum(np.empty(0, np.int64)).tolist() == []


def test_the_nesting_of_a_trace_is_found_once():
    trace = make_trace([event("a", 0, 10)])

    assert nesting(trace) is nesting(trace)


def test_children_and_kernels_are_found_by_their_owner():
    trace = make_trace(
        [
            event("op", 0, 100),
            event("first", 10, 20),
            event("second", 30, 40),
            event("kernel", 35, 95, kind="kernel", device="CUDA", launcher=2),
        ]
    )

    assert children(trace, 0) == [1, 2]
    assert children(trace, 1) == []
    assert launched(trace, 2) == [3]
    assert launched(trace, 0) == []
    assert launched(make_trace([event("a", 0, 1)]), 0) == []


intervals = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 15), st.integers(1, 2)), max_size=25)


@given(intervals)
def test_nesting_is_that_of_a_plain_stack_of_open_events(rows):
    trace = make_trace([event("e", start, start + length, thread=thread) for start, length, thread in rows])
    expected = [-1] * len(trace)
    for thread in range(len(trace.tracks)):
        open_events = []
        for row in np.flatnonzero(trace.track == thread).tolist():
            start, end = trace.start_ns[row], trace.end_ns[row]
            while open_events and (start >= trace.end_ns[open_events[-1]] or end > trace.end_ns[open_events[-1]]):
                open_events.pop()
            expected[row] = open_events[-1] if open_events else -1
            open_events.append(row)

    assert nesting(trace).parent.tolist() == expected
