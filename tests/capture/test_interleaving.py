"""Scopes of tasks that take turns, told apart among events made by hand."""

import weakref
from dataclasses import replace
from typing import Any

import pytest
from traces import event, make_trace

from mtprof_nb.analysis.nesting import nesting
from mtprof_nb.capture import async_scopes as interleaving
from mtprof_nb.capture.async_scopes import OpenScope, OpenScopes, mark_interleaved
from mtprof_nb.capture.clock import Clock
from mtprof_nb.model.trace import Trace

FAR = 1_000_000


def scope(name: str, entering_ns: int, entered_ns: int) -> OpenScope:
    return OpenScope(name, None, 1, entering_ns, entered_ns)


def asynchronous(trace: Trace, scopes: list[OpenScope]) -> list[int]:
    return [int(start) for start in trace.start_ns[mark_interleaved(trace, scopes)]]


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

    assert asynchronous(trace, [scope("a", FAR - 5, FAR + 1)]) == [FAR]
    twice = [scope("a", FAR - 5, FAR + 1), scope("a", FAR + 4, FAR + 6)]
    assert asynchronous(trace, twice) == [FAR, FAR + 5]
    assert asynchronous(trace, [scope("a", 2 * FAR, 2 * FAR)]) == [], "an op is no scope"
    assert asynchronous(trace, [scope("unknown", 0, 5), scope("b", 0, 5)]) == []


def test_of_two_namesakes_the_one_that_began_while_the_scope_was_entered_is_marked() -> None:
    trace = make_trace([event("a", 1000, 1010, kind="scope"), event("a", 1020, 9000, kind="scope")])
    assert asynchronous(trace, [scope("a", 1015, 1025)]) == [1020]
    assert asynchronous(trace, [scope("a", 990, 1001)]) == [1000]


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The task that runs, the test's to change."""
    tasks: list[Any] = [None]
    monkeypatch.setattr(interleaving, "current_task", lambda: tasks[-1])
    return tasks


class Task:
    """A stand-in: only who it is counts."""


def test_a_scope_waits_while_another_task_opens_or_closes_one(running: list[Any]) -> None:
    scopes, one, other = OpenScopes(Clock()), weakref.ref(first := Task()), weakref.ref(second := Task())
    around = scopes.entering("around")
    running.append(one)
    waiting = scopes.entering("waiting")
    within = scopes.entering("within")
    scopes.left(within)
    assert scopes.take_interleaved() == [], "all of it is one task's"
    running.append(other)
    synchronous = scopes.entering("synchronous")
    assert scopes.take_interleaved() == [waiting], "neither what has just begun nor what is around the loop"
    scopes.left(synchronous)
    crossed = scopes.entering("crossed")
    assert scopes.take_interleaved() == []
    running.append(one)
    scopes.left(waiting)
    assert scopes.take_interleaved() == [crossed]
    scopes.left(crossed)
    running.append(None)
    scopes.left(around)
    assert scopes.take_interleaved() == []
    del first, second


def test_a_synchronous_scope_between_two_waiting_ones_has_its_own_time() -> None:
    trace = make_trace(
        [
            event("first", 0, 100, kind="scope"),
            event("one", 0, 20),
            event("second", 30, 130, kind="scope"),
            event("synchronous", 40, 70, kind="scope"),
            event("two", 45, 55),
        ]
    )
    is_async = mark_interleaved(trace, [scope("first", 0, 0), scope("second", 30, 30)])
    costs = nesting(replace(trace, is_async=is_async))
    assert costs.self_ns.tolist() == [0, 20, 0, 20, 10]
    assert costs.parent.tolist() == [-1, -1, -1, -1, 3]
