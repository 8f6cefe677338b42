"""A finished trace: what is added to the events of the hooks, on hand-made ones."""

import numpy as np
import pytest
from traces import event, make_trace

from mtprof_nb.capture.clock import Clock
from mtprof_nb.capture.finish import StoppedWindow, finish
from mtprof_nb.capture.hook import Request
from mtprof_nb.errors import MtprofWarning
from mtprof_nb.model.trace import Columns, Trace


class FixedClock(Clock):
    def __init__(self) -> None:
        self.offset_ns = 1_000


def stopped(**traces: Trace) -> StoppedWindow:
    return StoppedWindow(
        request=Request(clock=FixedClock(), max_events=3, trace_id="T"),
        traces=traces,
        hooks=tuple(traces),
        began_ns=0,
        ended_ns=90,
        start_ns=5,
        is_partial=False,
        # Events follow a clock that is 10 ns ahead of the session's.
        event_times=lambda moments: np.asarray(moments) + 10,
    )


NO_STEPS = [(0, 0)]


def test_a_scope_that_is_cut_at_the_end_comes_after_the_longer_one_that_began_with_it() -> None:
    rows = [event("cut", 40, 500, kind="scope"), event("op", 40, 200), event("inner", 40, 41, kind="scope")]

    trace = finish(stopped(kineto=make_trace(rows)), NO_STEPS, [])

    assert [trace.names[name] for name in trace.name] == ["op", "cut", "inner"]
    assert trace.duration_ns.tolist() == [160, 60, 1]


def test_all_that_is_known_of_a_recording_is_in_its_trace() -> None:
    window = stopped(kineto=make_trace([event("a", 20, 30), event("open", 40, 500, kind="scope")]))

    trace = finish(window, [(3, 0), (4, 25)], [], label="cell", metadata={"key": "1"})

    assert (trace.began_ns, trace.ended_ns, trace.windows) == (10, 100, ((10, 100),))
    assert (trace.label, trace.trace_id, trace.hooks, dict(trace.metadata)) == ("cell", "T", ("kineto",), {"key": "1"})
    assert trace.step.tolist() == [3, 4]
    assert trace.end_ns.tolist() == [30, 100], "a scope that is open at the end ends there"
    assert (trace.own_ns, trace.overhead_ns) == (5, 5 + 2 * 600)


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
    with pytest.warns(MtprofWarning, match="stopped at max_events=3: 1 events are missing"):
        trace = finish(window, NO_STEPS, [])

    assert [trace.names[name] for name in trace.name] == ["kineto", "candle", "kineto"]
    assert trace.dropped == 1
