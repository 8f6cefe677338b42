"""Lengths of steps, from scopes or from the first events of steps."""

from traces import event, make_trace

from mtprof_nb.analysis.step_times import StepTime, step_times
from mtprof_nb.model.merge import merge


def test_without_steps_there_are_no_lengths() -> None:
    assert step_times(make_trace([event("aten::mm", 0, 10), event("aten::mm", 20, 30)])) == ()


def test_a_step_reaches_to_the_first_event_of_the_next_and_the_last_to_the_end() -> None:
    rows = [event("aten::mm", 10, 20, step=0), event("aten::mm", 30, 50, step=0), event("aten::mm", 60, 65, step=1)]

    assert step_times(make_trace(rows, ended_ns=100)) == (StepTime(0, 10, 50), StepTime(1, 60, 40))


def test_a_step_without_ops_only_ends_the_one_before() -> None:
    rows = [
        event("aten::mm", 10, 20, step=0),
        event("aten::mm", 30, 35, step=1),
        event("next batch", 40, 41, kind="scope", step=2),
    ]

    assert step_times(make_trace(rows, ended_ns=99)) == (StepTime(0, 10, 20), StepTime(1, 30, 10))


def test_the_last_step_of_each_window_ends_with_the_window() -> None:
    rows = [event("aten::mm", 10, 20, step=4), event("aten::mm", 110, 120, step=9)]

    found = step_times(make_trace(rows, windows=((0, 50), (100, 130)), began_ns=0, ended_ns=130))

    assert found == (StepTime(4, 10, 40), StepTime(9, 110, 20))


def test_scopes_of_steps_tell_their_lengths() -> None:
    rows = [
        event("ProfilerStep#3", 5, 25, kind="scope", step=3),
        event("aten::mm", 10, 20, step=3),
        event("ProfilerStep#4", 27, 40, kind="scope", step=4),
        event("aten::mm", 30, 35, step=4),
    ]

    assert step_times(make_trace(rows, ended_ns=90)) == (StepTime(3, 5, 20), StepTime(4, 27, 13))


def test_a_step_of_several_processes_is_as_long_as_that_of_the_slowest() -> None:
    slow = [event("aten::mm", 0, 10, step=0), event("aten::mm", 50, 60, step=1)]
    fast = [event("aten::mm", 0, 10, step=0), event("aten::mm", 40, 50, step=1)]
    both = merge([make_trace(slow, rank=0, ended_ns=100), make_trace(fast, rank=1, ended_ns=100)])

    assert [step.duration_ns for step in step_times(both)] == [50, 60]
