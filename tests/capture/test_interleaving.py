"""Scopes of tasks that take turns, told apart among events made by hand."""

import weakref

import numpy as np
from traces import event, make_trace

from mtprof_nb.capture.hook import Clock
from mtprof_nb.capture.interleaving import OpenScope, OpenScopes, mark_interleaved
from mtprof_nb.trace import Trace

FAR = 1_000_000


def scope(name: str, entering_ns: int, entered_ns: int) -> OpenScope:
    return OpenScope(name, None, 1, entering_ns, entered_ns)


def asynchronous(trace: Trace) -> list[int]:
    return [int(start) for start in trace.start_ns[trace.is_async]]


def test_each_scope_marks_the_one_event_that_began_while_it_was_entered() -> None:
    trace = make_trace(
        [
            event("a", 0, 10, kind="scope"),
            event("a", FAR, FAR + 10, kind="scope"),
            event("a", FAR + 5, FAR + 20, kind="scope"),
            event("a", 2 * FAR, 2 * FAR + 10),
            event("b", 3 * FAR, 3 * FAR + 10, kind="scope"),
        ]
    )

    assert asynchronous(mark_interleaved(trace, [scope("a", FAR - 5, FAR + 1)])) == [FAR]
    twice = [scope("a", FAR - 5, FAR + 1), scope("a", FAR + 4, FAR + 6)]
    assert asynchronous(mark_interleaved(trace, twice)) == [FAR, FAR + 5]
    assert asynchronous(mark_interleaved(trace, [scope("a", 2 * FAR, 2 * FAR)])) == [], "an op is no scope"
    assert asynchronous(mark_interleaved(trace, [scope("unknown", 0, 5), scope("b", 0, 5)])) == []
    later = mark_interleaved(trace, [scope("b", 0, 5)], lambda moments: np.array(moments) + 3 * FAR)
    assert asynchronous(later) == [3 * FAR]


def test_a_window_takes_the_interleaved_scopes_of_its_own_time() -> None:
    scopes = OpenScopes(Clock())
    outer = scopes.entering("outer")
    outer.task = weakref.ref(scopes)
    inner = scopes.entering("inner")

    assert scopes.take_interleaved() == [outer, inner]
    assert scopes.take_interleaved() == []
    again = scopes.entering("again")
    assert scopes.take_interleaved() == [again]
    for one in (again, inner, outer):
        scopes.left(one)
