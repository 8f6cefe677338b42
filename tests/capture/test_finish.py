"""A finished trace: what is added to the events of the hooks, on hand-made ones."""

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from traces import event, make_trace

from mtprof_nb.capture.clock import Clock
from mtprof_nb.capture.collector_watch import WatchedCollections
from mtprof_nb.capture.finish import NO_STEP, StoppedWindow, finish
from mtprof_nb.capture.hook import Request
from mtprof_nb.capture.native import native_cost
from mtprof_nb.capture.samples.sampled_stacks import SampledStacks
from mtprof_nb.errors import MtprofWarning
from mtprof_nb.model.trace import Columns, Frame, StackInterner, Trace, Unrecorded


class FixedClock(Clock):
    def __init__(self) -> None:
        self.offset_ns = 1_010


def stopped(**traces: Trace) -> StoppedWindow:
    return StoppedWindow(
        request=Request(clock=FixedClock(), max_events=3, trace_id="T"),
        traces=traces,
        hooks=tuple(traces),
        began_ns=10,
        ended_ns=100,
        start_ns=5,
        is_partial=False,
    )


NO_STEPS = [(0, 10)]
FULL = "max_events=3 was reached; raise max_events, or use a schedule"


def test_a_scope_that_is_cut_at_the_end_comes_after_the_longer_one_that_began_with_it() -> None:
    rows = [event("cut", 40, 500, kind="scope"), event("op", 40, 200), event("inner", 40, 41, kind="scope")]

    trace = finish(stopped(kineto=make_trace(rows)), NO_STEPS, [])

    assert [trace.names[name] for name in trace.name] == ["op", "cut", "inner"]
    assert trace.duration_ns.tolist() == [160, 60, 1]


def test_all_that_is_known_of_a_recording_is_in_its_trace() -> None:
    window = stopped(kineto=make_trace([event("a", 20, 30), event("open", 40, 500, kind="scope")]))

    trace = finish(window, [(3, 10), (4, 35)], [], label="cell", metadata={"key": "1"})

    assert (trace.began_ns, trace.ended_ns, trace.windows) == (10, 100, ((10, 100),))
    assert (trace.label, trace.trace_id, trace.hooks, dict(trace.metadata)) == ("cell", "T", ("kineto",), {"key": "1"})
    assert trace.step.tolist() == [3, 4]
    assert trace.end_ns.tolist() == [30, 100], "a scope that is open at the end ends there"
    assert (trace.own_ns, trace.overhead_ns) == (5, 5 + 2 * 600)


def test_events_after_a_loop_over_steps_have_the_number_that_follows_and_no_step_begins() -> None:
    rows = [event("a", 20, 30), event("b", 40, 50), event("rest", 70, 80)]

    trace = finish(stopped(kineto=make_trace(rows)), [(3, 10), (4, 35), (NO_STEP, 60)], [])

    assert trace.step.tolist() == [3, 4, 5]
    assert trace.step_starts == ((15, 3), (35, 4), (60, -1))


def test_lines_are_told_the_times_of_events_at_moments_of_the_monotonic_clock() -> None:
    moments = []

    def annotate(_trace: Trace, times_of) -> Columns:
        moments.extend(times_of(np.array([7, 8])).tolist())
        return {"lines_note": "as told"}

    trace = finish(stopped(kineto=make_trace([event("a", 20, 30)])), NO_STEPS, [], annotate=annotate)

    assert moments == [1_017, 1_018]
    assert trace.lines_note == "as told"


def test_hooks_beside_one_another_keep_together_no_more_than_the_limit() -> None:
    def part(name: str, at: int) -> Trace:
        return make_trace([event(name, at, at + 5), event(name, at + 50, at + 55)])

    window = stopped(kineto=part("kineto", 0), candle=part("candle", 10))
    with pytest.warns(MtprofWarning, match="and 1 events are missing: max_events=3 was reached; raise max_events"):
        trace = finish(window, NO_STEPS, [])

    assert [trace.names[name] for name in trace.name] == ["kineto", "candle", "kineto"]
    assert trace.dropped == 1
    assert (trace.ended_ns, trace.unrecorded) == (60, (Unrecorded(60, 100, FULL),))


def full_at(moment_ns: int, trace: Trace, **facts: Any) -> Trace:
    return replace(trace, unrecorded=(Unrecorded(moment_ns, moment_ns, FULL),), **facts)


@pytest.mark.filterwarnings("ignore:recording stopped")
def test_a_recording_that_was_full_ends_at_that_moment_in_every_respect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_cost, "_op_ns", lambda: 100.0)
    rows = [
        event("around", 20, 95, kind="scope"),
        event("running", 40, 90, memory=(0, 300)),
        event("kernel", 45, 70, kind="kernel", device="CUDA"),
        event("later", 61, 62),
    ]
    blocks = [{"time_ns": at, "nbytes": 100, "event": 1, "device": "CPU"} for at in (50, 70)]
    recorded = full_at(60, make_trace(rows, blocks), dropped=5)
    interner = StackInterner()
    samples = SampledStacks(
        asked_ns=np.array([0, 40, 50]) - 1_000,
        taken_ns=np.array([1, 55, 56]) - 1_000,
        thread=np.full(3, threading.main_thread().native_id),
        stack=np.full(3, interner.stack([Frame("f.py", 1, "f")]), np.int32),
        is_waiting=np.zeros(3, np.bool_),
        awake_ns=np.full(3, -1),
        computed_ns=np.full(3, -1),
        is_of_user=np.ones(3, np.bool_),
        certainty=np.zeros(3, np.int8),
        tree=interner.tree(),
    )
    collected = np.array([20, 45]) - 1_000
    collections = WatchedCollections(collected, collected + 6, np.ones(2, np.int64), np.zeros(2, np.int8))
    window = replace(stopped(native=recorded), samples=samples, collections=collections)

    trace = finish(window, [(0, 10), (1, 40), (2, 80)], [])

    assert [trace.names[name] for name in trace.name] == ["around", "running", "kernel"]
    assert trace.end_ns.tolist() == [60, 60, 60]
    assert (trace.began_ns, trace.ended_ns, trace.windows) == (10, 60, ((10, 60),))
    assert trace.unrecorded == (Unrecorded(60, 100, FULL),)
    assert trace.dropped == 5 + 1
    assert trace.step.tolist() == [0, 1, 1]
    assert trace.step_starts == ((15, 0), (40, 1))
    assert trace.has_all_ops
    assert trace.overhead_ns == 5 + 80 + 55 + 80 + 12, "of the events and the block that are left"
    found = trace.memory_after, trace.allocations, trace.samples, trace.collections
    memory_after, allocations, sampled, ran = (one for one in found if one is not None)
    assert memory_after.tolist() == [-1, 100, -1]
    assert allocations.time_ns.tolist() == [50]
    assert (sampled.time_ns.tolist(), sampled.taken_ns.tolist()) == ([50], [60]), "the first is of the start"
    assert ran.start_ns.tolist() == [30]


@pytest.mark.filterwarnings("ignore:recording stopped")
def test_of_two_hooks_the_one_that_was_full_first_ends_the_recording() -> None:
    early = full_at(30, make_trace([event("early", 20, 25)]))
    late = full_at(50, make_trace([event("late", 28, 40), event("late", 45, 48)]))

    trace = finish(stopped(kineto=late, candle=early), NO_STEPS, [])

    assert [trace.names[name] for name in trace.name] == ["early", "late"]
    assert trace.end_ns.tolist() == [25, 30]
    assert trace.unrecorded == (Unrecorded(30, 100, FULL),)


def test_a_recording_that_was_full_only_after_its_end_is_whole() -> None:
    trace = finish(stopped(native=full_at(100, make_trace([event("a", 20, 30)]))), NO_STEPS, [])

    assert (trace.ended_ns, trace.unrecorded, len(trace)) == (100, (), 1)


@pytest.mark.parametrize(
    ("steps", "starts"),
    [
        ([(0, 10)], ()),
        ([(0, -40), (1, 30), (2, 50)], ((15, 0), (30, 1), (50, 2))),
        ([(0, -80), (6, -40), (7, 30), (8, 105)], ((15, 6), (30, 7))),
    ],
)
def test_steps_begin_when_they_were_marked_and_the_first_with_the_program(
    steps: list[tuple[int, int]], starts: tuple[tuple[int, int], ...]
) -> None:
    trace = finish(stopped(kineto=make_trace([event("a", 20, 30)])), steps, [])

    assert trace.step_starts == starts
