"""Rows of both sides: counts, times, bytes and verdicts, on hand-made recordings."""

import pytest
from traces import event, make_trace
from two_programs import row, run, sides

from mtprof_nb.comparison.compared import of_recordings
from mtprof_nb.comparison.differences import (
    kernel_differences,
    line_differences,
    op_differences,
    phase_differences,
    step_difference,
    whole_difference,
)
from mtprof_nb.comparison.verdicts import FASTER
from mtprof_nb.model.trace import Recorded, Trace


def test_an_op_of_both_sides_has_calls_and_times_of_both() -> None:
    (found,) = op_differences(sides(run(("aten::mm", 100), ("aten::mm", 50)), run(("aten::mm", 120), ("aten::mm", 60))))

    assert (found.name, found.a_calls, found.b_calls, found.change) == ("aten::mm", 2, 2, "")
    assert (found.a_ns, found.b_ns, found.delta_ns, found.ratio) == (150, 180, 30, 1.2)
    assert found.verdict is not None
    assert found.verdict.answer == "cannot tell"


def test_ops_are_new_gone_or_called_more_or_less_often() -> None:
    before = run(("aten::mm", 100), ("aten::add", 10), ("aten::mul", 10), ("aten::mul", 10))
    after = run(("aten::mm", 100), ("aten::mm", 100), ("aten::relu", 10), ("aten::mul", 10))

    found = {each.name: (each.change, each.verdict is None) for each in op_differences(sides(before, after))}

    assert found == {
        "aten::mm": ("called more often", False),
        "aten::add": ("gone", True),
        "aten::mul": ("called less often", False),
        "aten::relu": ("new", True),
    }


def test_rows_are_ordered_by_the_change_of_time() -> None:
    before, after = run(("small", 10), ("large", 100), ("same", 50)), run(("small", 14), ("large", 80), ("same", 50))

    assert [each.name for each in op_differences(sides(before, after))] == ["large", "small", "same"]


def test_values_are_those_of_one_step_if_the_numbers_of_steps_differ() -> None:
    found = row(op_differences(sides(run(("aten::mm", 100), steps=2), run(("aten::mm", 90), steps=5))), "aten::mm")

    assert (found.a_calls, found.b_calls, found.a_ns, found.b_ns, found.change) == (1, 1, 100, 90, "")


def test_whole_recordings_are_compared_if_the_numbers_of_steps_agree() -> None:
    found = row(op_differences(sides(run(("aten::mm", 100), steps=3), run(("aten::mm", 90), steps=3))), "aten::mm")

    assert (found.a_calls, found.a_ns, found.b_ns) == (3, 300, 270)


def test_a_value_of_several_runs_is_their_median() -> None:
    before = [run(("aten::mm", length)) for length in (100, 300, 110)]
    after = [run(("aten::mm", length)) for length in (90, 80, 500)]

    found = row(op_differences(sides(before, after)), "aten::mm")

    assert (found.a_ns, found.b_ns) == (110, 90)


def test_calls_have_changed_only_if_no_run_of_the_other_side_has_as_many() -> None:
    before = [run(*[("aten::mm", 10)] * count) for count in (2, 4)]

    assert op_differences(sides(before, [run(*[("aten::mm", 10)] * 3)] * 2))[0].change == ""
    assert op_differences(sides(before, [run(*[("aten::mm", 10)] * 5)] * 2))[0].change == "called more often"


def test_four_runs_of_each_in_turns_give_a_verdict() -> None:
    before = [run(("aten::mm", 100 + number), began_ns=number * 1000) for number in (0, 2, 4, 6)]
    after = [run(("aten::mm", 70 + number), began_ns=number * 1000) for number in (1, 3, 5, 7)]

    found = op_differences(sides(before, after))[0].verdict

    assert found is not None
    assert found.answer == "faster"
    assert found.p == pytest.approx(2 / 70)


def test_a_row_with_little_time_on_both_sides_does_not_matter() -> None:
    before, after = run(("aten::mm", 10_000), ("aten::add", 9)), run(("aten::mm", 10_000), ("aten::add", 90))

    found = row(op_differences(sides(before, after)), "aten::add").verdict

    assert found is not None
    assert (found.answer, found.ratio) == ("no difference that matters", None)


def test_one_run_of_each_tells_a_difference_of_calls_that_all_differ_by_far() -> None:
    before, after = run(*[("aten::mm", 1000)] * 3), run(*[("aten::mm", 20)] * 3)

    found = op_differences(sides(before, after))[0].verdict

    assert found is not None
    assert (found.answer, found.ratio) == ("faster", 0.02)


def test_one_call_that_takes_very_long_tells_nothing() -> None:
    before, after = run(*[("aten::mm", 10)] * 9), run(*[("aten::mm", 10)] * 8, ("aten::mm", 5000))

    found = op_differences(sides(before, after))[0].verdict

    assert found is not None
    assert found.answer == "cannot tell"


def test_times_of_recordings_with_different_flags_are_not_judged() -> None:
    before = run(*[("aten::mm", 1000)] * 3, recorded=Recorded(with_stack=True))

    found = op_differences(sides(before, run(*[("aten::mm", 10)] * 3)))[0].verdict

    assert found is not None
    assert (found.answer, found.ratio) == ("cannot tell", 0.01)
    assert "different flags" in found.why


def test_ops_that_only_one_of_two_hooks_records_are_left_out() -> None:
    before = run(("aten::linear", 5), ("aten::mm", 100), hooks=("kineto",))
    after = run(("aten::mm", 100), ("aten::mm", 100), hooks=("native",))

    assert [(each.name, each.change) for each in op_differences(sides(before, after))] == [("aten::mm", "")]


def test_an_op_is_not_gone_where_events_are_missing() -> None:
    before, after = run(("aten::mm", 100), ("aten::add", 10)), run(("aten::mm", 100), dropped=5)

    assert [each.name for each in op_differences(sides(before, after))] == ["aten::mm"]


def test_kernels_have_their_time_on_the_device() -> None:
    def recorded(*lengths: int) -> object:
        rows = [event("aten::mm", 0, 50)]
        for number, length in enumerate(lengths):
            start = 100 * number
            rows.append(event("sgemm", start, start + length, kind="kernel", device="CUDA", launcher=0))
        return make_trace(rows)

    two = sides(recorded(40, 40), recorded(30, 30, 30))

    (found,) = kernel_differences(two)
    assert (found.level, found.name, found.a_calls, found.b_calls) == ("kernel", "sgemm", 2, 3)
    assert (found.a_ns, found.b_ns, found.change) == (80, 90, "called more often")
    assert [each.name for each in op_differences(two)] == ["aten::mm"]


def test_without_a_device_there_are_no_kernels() -> None:
    assert kernel_differences(sides(run(("aten::mm", 1)), run(("aten::mm", 1)))) == []


def test_phases_stand_in_the_order_of_a_step() -> None:
    def training(backward: int) -> object:
        return make_trace(
            [
                event("aten::add_", 500, 510, phase="optimizer"),
                event("aten::mm", 0, 100, phase="forward"),
                event("MmBackward0", 100, 100 + backward, phase="backward"),
            ]
        )

    found = phase_differences(sides(training(200), training(150)))

    assert [(each.name, each.a_ns, each.b_ns) for each in found] == [
        ("forward", 100, 100),
        ("backward", 200, 150),
        ("optimizer", 10, 10),
    ]


def test_the_step_is_the_median_step() -> None:
    before, after = run(("aten::mm", 100), steps=4), run(("aten::mm", 70), steps=3)

    found = step_difference(sides(before, after))

    assert found is not None
    assert (found.a_ns, found.b_ns) == (100, 70)


def test_fewer_than_two_steps_have_no_median() -> None:
    assert step_difference(sides(run(("aten::mm", 100), steps=4), run(("aten::mm", 70)))) is None


def test_the_wall_time_is_without_that_of_the_profiler() -> None:
    found = whole_difference(sides(run(("aten::mm", 100), own_ns=30), run(("aten::mm", 90))))

    assert (found.a_ns, found.b_ns) == (70, 90)


def test_whole_recordings_without_steps_give_no_verdict() -> None:
    found = whole_difference(sides(run(("aten::mm", 100)), run(("aten::mm", 1)))).verdict

    assert found is not None
    assert (found.answer, found.ratio) == ("cannot tell", 0.01)


def test_a_loop_of_many_ops_that_became_one_is_faster_without_steps() -> None:
    loop, one = run(*[("aten::add", 10)] * 100), run(("aten::sum", 80))

    assert [_whole(loop, one), _whole(one, loop)] == ["faster", "slower"]
    # 90 calls are compared: the ten longest may be first calls, or wait for the machine.
    assert _whole(loop, run(("aten::sum", 91))) == "cannot tell"
    assert _whole(run(*[("aten::add", 1)] * 99, ("aten::add", 9_000)), one) == "cannot tell"


def test_ops_that_ran_at_once_are_no_measure_of_the_wall_time() -> None:
    both = [event("aten::add", 10 * at, 10 * at + 10, thread=thread) for at in range(60) for thread in (1, 2)]

    assert _whole(make_trace(both), run(("aten::sum", 50))) == "cannot tell"


def _whole(a: Trace, b: Trace) -> str:
    verdict = whole_difference(sides(a, b)).verdict
    return verdict.answer if verdict else ""


def _cell(number: int, text: str, *lines: tuple[int, int]) -> object:
    """A recording of a cell: for each (line, nanoseconds) one op."""
    file, now, rows = f"<ipython-input-{number}>", 0, []
    for line, length in lines:
        rows.append(event("aten::mm", now, now + length, line=(file, line)))
        now += length
    return make_trace(rows, sources={file: text})


def test_lines_of_an_edited_cell_are_joined_by_their_text() -> None:
    before = _cell(1, "x = load()\ny = slow(x)\nz = y + 1", (1, 10), (2, 300), (3, 20))
    after = _cell(7, "import torch\nx = load()\ny = quick(x)\nw = y * 2", (2, 11), (3, 30), (4, 5))

    found = line_differences(sides(before, after))

    assert [(each.name, each.detail, each.a_ns, each.b_ns, each.change) for each in found] == [
        ("y = quick(x)", "cell:2 → cell:3", 300, 30, "edited"),
        ("z = y + 1", "cell:3", 20, None, "gone"),
        ("w = y * 2", "cell:4", None, 5, "new"),
        ("x = load()", "cell:1 → cell:2", 10, 11, ""),
    ]


def test_a_new_line_with_the_number_of_another_one_is_another_row() -> None:
    before, after = _cell(1, "alpha(beta)", (1, 10)), _cell(2, "x = 3.5", (1, 30))

    assert [(each.name, each.change) for each in line_differences(sides(before, after))] == [
        ("x = 3.5", "new"),
        ("alpha(beta)", "gone"),
    ]


def test_a_cell_that_ran_again_unchanged_has_the_same_lines() -> None:
    text = "y = x @ w\nz = y + 1"

    found = line_differences(sides(_cell(1, text, (1, 10), (2, 5)), _cell(2, text, (1, 12), (2, 5))))

    assert [(each.name, each.a_ns, each.b_ns, each.change) for each in found] == [
        ("y = x @ w", 10, 12, ""),
        ("z = y + 1", 5, 5, ""),
    ]


def test_steps_of_a_line_that_all_differ_by_far_give_a_verdict() -> None:
    def recorded(length: int) -> object:
        rows = [
            event("aten::mm", 10_000 * step, 10_000 * step + length, step=step, line=("train.py", 3))
            for step in range(4)
        ]
        return make_trace(rows, sources={"train.py": "\n\ny = x @ w"})

    (found,) = line_differences(sides(recorded(5_000), recorded(100)))

    assert found.verdict is not None
    assert (found.verdict.answer, found.verdict.ratio) == ("faster", 0.02)


def test_a_line_without_text_has_its_place_for_a_name() -> None:
    one = make_trace([event("aten::mm", 0, 10, line=("gone.py", 7))])

    assert [(each.name, each.change) for each in line_differences(sides(one, one))] == [("gone.py:7", "")]


def test_without_lines_on_one_side_there_are_none() -> None:
    assert line_differences(sides(_cell(1, "y = x", (1, 10)), run(("aten::mm", 10)))) == []


def test_an_op_that_is_called_less_often_is_judged_by_its_time_in_a_step() -> None:
    """A hundred short calls in each step against one call that takes longer than any of them."""

    def training(calls: int, length: int) -> Trace:
        rows = [
            event("aten::div", 10_000 * step + 50 * call, 10_000 * step + 50 * call + length, step=step)
            for step in range(4)
            for call in range(calls)
        ]
        return make_trace(rows, ended_ns=40_000)

    (found,) = op_differences(sides(training(100, 40), training(1, 49)))

    assert found.verdict is not None
    assert found.verdict.answer == "faster"


def test_without_steps_all_rows_of_one_run_each_are_judged_alike() -> None:
    def looped(calls: int) -> Trace:
        ops = [event("aten::mul", 1_000 * at, 1_000 * at + 900, line=("t.py", 2)) for at in range(calls)]
        rest = [event("aten::sum", 1_000 * calls, 1_000 * calls + 40, phase="backward", line=("t.py", 3))] * 2
        return make_trace([*ops, *rest], sources={"t.py": "for x in xs:\n    y = x * 2\ny.sum()"})

    found = of_recordings(sides(looped(1_000), looped(16)))

    told = {(row.level, row.name): row.verdict.answer for row in found.differences if row.verdict is not None}
    assert found.verdict.answer == FASTER
    assert told[("whole", "wall time")] == told[("phase", "forward")] == FASTER
    assert told[("line", "y = x * 2")] == told[("op", "aten::mul")] == FASTER
    ratios = [row.ratio for row in found.differences if row.verdict is not None and row.verdict.answer == FASTER]
    assert ratios == pytest.approx([0.016] * 4, rel=0.01)
