"""Results that are worked out once a trace."""

import gc
import weakref

import pytest
from traces import event, make_trace

from mtprof_nb.analysis import once
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.trace import Trace


def test_a_result_is_made_once_for_each_trace_and_arguments() -> None:
    made: list[tuple[int, bool]] = []

    @once_a_trace
    def lengths(trace: Trace, twice: bool = False) -> int:
        made.append((len(trace), twice))
        return len(trace) * (1 + twice)

    one, two = make_trace([event("a", 0, 1)]), make_trace([event("a", 0, 1), event("b", 2, 3)])

    assert [lengths(one), lengths(one), lengths(one, True), lengths(two), lengths(one, True)] == [1, 1, 2, 2, 2]
    assert made == [(1, False), (1, True), (2, False)]


def test_a_result_goes_with_its_trace() -> None:
    names = once_a_trace(lambda trace: set(trace.names))
    trace = make_trace([event("a", 0, 1)])
    result, gone = weakref.ref(names(trace)), weakref.ref(trace)
    del trace
    gc.collect()

    assert (result(), gone()) == (None, None)


def test_results_are_kept_for_the_traces_that_were_used_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(once, "MOST_EVENTS", 3)
    made: list[str] = []

    @once_a_trace
    def label(trace: Trace) -> str:
        made.append(trace.label)
        return trace.label

    small = [make_trace([event("a", 0, 1)], label=name) for name in "abcd"]
    for trace in (*small[:3], *small[:3], small[3], *small[1:4], small[0]):
        label(trace)

    # Three of one event are kept together. The fourth took the place of the one that was not used for longest.
    assert made == ["a", "b", "c", "d", "a"]


def test_results_of_two_traces_of_any_length_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(once, "MOST_EVENTS", 0)
    length = once_a_trace(lambda trace: [len(trace)])
    one, two, three = (make_trace([event("a", 0, 1)]) for _ in range(3))
    first, second = length(one), length(two)

    assert (length(one) is first, length(two) is second) == (True, True)
    length(three)
    assert (length(two) is second, length(one) is first) == (True, False)


def test_a_result_is_kept_though_other_traces_were_used_to_make_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(once, "MOST_EVENTS", 0)
    others = [make_trace([event("a", 0, 1)]) for _ in range(3)]
    length = once_a_trace(lambda trace: [len(trace)])
    total = once_a_trace(lambda trace: [sum(len(length(other)) for other in others)])
    trace = make_trace([event("a", 0, 1)])

    assert total(trace) is total(trace)
