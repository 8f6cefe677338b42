"""Lengths of steps, from scopes, from the moments of `step()`, or from the first events of steps."""

from traces import event, make_trace

from mtprof_nb.analysis.steps.step_times import StepTime, step_times, steps_of_processes
from mtprof_nb.analysis.summary import summary
from mtprof_nb.model.merge import merge
from mtprof_nb.model.trace import Unrecorded
from mtprof_nb.tables.step_table import Steps
from mtprof_nb.views.tabs.timeline import timeline_blocks

STARTS = ((5, 1), (25, 2), (100, 9))


def test_without_steps_there_are_no_lengths() -> None:
    assert step_times(make_trace([event("aten::mm", 0, 10), event("aten::mm", 20, 30)])) == ()


def test_a_step_reaches_to_the_first_event_of_the_next_and_the_last_to_the_end() -> None:
    rows = [event("aten::mm", 10, 20, step=0), event("aten::mm", 30, 50, step=0), event("aten::mm", 60, 65, step=1)]

    assert step_times(make_trace(rows, ended_ns=100)) == (StepTime(0, 10, 50), StepTime(1, 60, 40))


def test_a_slow_load_belongs_to_the_step_for_which_it_loads() -> None:
    starts = tuple((10 * number + 20 * (number > 5), number) for number in range(8))
    # Each step loads for 4 ns, number 5 for 24 ns, and then runs an op for 6 ns.
    ops = [(start + (24 if number == 5 else 4), number) for start, number in starts[:7]]
    rows = [event("aten::mm", at, at + 6, step=number) for at, number in ops]

    trace = make_trace(rows, step_starts=starts, began_ns=0, ended_ns=99)

    lengths = [10] * 5 + [30] + [10]
    assert [step.duration_ns for step in step_times(trace)] == lengths, "the last look for a batch is no step's time"
    slow = [(row.number, row.differs) for row in Steps(trace).slow]
    assert slow == [(5, "outside ops takes 0.024 µs instead of 0.004 µs")]


def test_the_last_step_of_a_window_ends_with_it_and_one_that_was_cut_is_left_out() -> None:
    rows = [event("aten::mm", at, at + 5, step=number) for at, number in ((10, 1), (30, 2), (110, 9))]
    windows = {"began_ns": 0, "ended_ns": 130, "windows": ((0, 50), (100, 130)), "step_starts": STARTS}

    assert step_times(make_trace(rows, **windows)) == (StepTime(1, 5, 20), StepTime(2, 25, 25), StepTime(9, 100, 30))
    full = make_trace(rows, **windows, unrecorded=(Unrecorded(50, 80, "full"),))
    assert step_times(full) == (StepTime(1, 5, 20), StepTime(9, 100, 30))
    assert full.step_starts == merge([full, full]).step_starts


def test_steps_of_ranks_begin_when_each_of_them_marked_them() -> None:
    parts = [
        make_trace(
            [event("aten::mm", 8, 9, step=0), event("aten::mm", 50, 60, step=1)],
            rank=rank,
            step_starts=((0, 0), (second, 1)),
            ended_ns=100,
        )
        for rank, second in enumerate((20, 45))
    ]

    assert steps_of_processes(merge(parts)) == (
        (StepTime(0, 0, 20), StepTime(1, 20, 80)),
        (StepTime(0, 0, 45), StepTime(1, 45, 55)),
    )


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


def test_the_rest_of_a_program_after_a_loop_over_steps_is_no_step() -> None:
    rows = [event("aten::mm", at, at + 5, step=number) for number, at in enumerate((10, 30, 60))]
    scopes = [event(f"ProfilerStep#{n}", at, at + 9, kind="scope", step=n) for n, at in enumerate((9, 29, 59))]
    facts = {"step_starts": ((0, 0), (20, 1), (50, -1)), "began_ns": 0, "ended_ns": 100}

    trace, scheduled = make_trace(rows, **facts), make_trace([*rows, *scopes], **facts)

    assert step_times(trace) == (StepTime(0, 0, 20), StepTime(1, 20, 30))
    assert step_times(scheduled) == (StepTime(0, 9, 9), StepTime(1, 29, 9))
    assert (summary(trace).steps, [row.ops for row in Steps(trace)]) == (2, [1, 1])
    assert [number for number, _ in timeline_blocks._step_starts(trace)] == [0, 1]
    assert Steps(make_trace(rows, **facts | {"step_starts": ()}))[-1].number == 2
