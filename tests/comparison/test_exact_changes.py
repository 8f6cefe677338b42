"""Changes that need no statistics."""

from traces import event, make_trace
from two_programs import run, sides

from mtprof_nb.comparison.differences import op_differences
from mtprof_nb.comparison.exact_changes import Change, exact_changes
from mtprof_nb.comparison.sides import Sides
from mtprof_nb.model.trace import Trace


def _changes(two: Sides) -> list[Change]:
    return exact_changes(two, op_differences(two))


def test_equal_programs_have_no_changes() -> None:
    assert _changes(sides(run(("aten::mm", 100)), run(("aten::mm", 300)))) == []


def test_ops_come_after_the_figures() -> None:
    found = _changes(sides(run(("aten::mm", 100)), run(("aten::mm", 100), ("aten::add", 5))))

    assert found == [
        Change("figure", "ops", 1.0, 2.0, detail="count"),
        Change("op", "aten::add", None, 1.0, "new"),
    ]


def _with_inputs(shape: tuple[int, ...], dtype: str = "float") -> Trace:
    return make_trace(
        [
            event("aten::mm", 0, 10, shapes=(shape, (8, 8)), dtypes=(dtype, dtype)),
            event("aten::t", 10, 20, shapes=((8, 8),)),
        ]
    )


def test_shapes_that_an_op_got_on_one_side_only_are_told() -> None:
    assert _changes(sides(_with_inputs((4, 8)), _with_inputs((16, 8)))) == [
        Change("shapes", "aten::mm", "[4, 8] [8, 8]", "[16, 8] [8, 8]")
    ]


def test_types_are_told_if_the_shapes_are_the_same() -> None:
    assert _changes(sides(_with_inputs((4, 8)), _with_inputs((4, 8), "c10::Half"))) == [
        Change("types", "aten::mm", "float float", "c10::Half c10::Half")
    ]


def test_shapes_are_compared_only_if_both_sides_have_them() -> None:
    assert _changes(sides(_with_inputs((4, 8)), run(("aten::mm", 10), ("aten::t", 10)))) == []


def test_of_many_shapes_some_are_named() -> None:
    before = make_trace([event("aten::mm", 10 * size, 10 * size + 5, shapes=((size,),)) for size in range(1, 6)])
    after = make_trace([event("aten::mm", 10 * size, 10 * size + 5, shapes=((7,),)) for size in range(1, 6)])

    assert _changes(sides(before, after)) == [Change("shapes", "aten::mm", "[1]; [2]; [3] and 2 more", "[7]")]


def _allocating(*sizes: int) -> Trace:
    return make_trace(
        [event("aten::empty", 0, 100, memory=(0, 0))],
        allocations=[{"time_ns": 10 * at, "nbytes": size, "event": 0} for at, size in enumerate(sizes)],
    )


def test_bytes_are_those_allocated_and_the_peak() -> None:
    found = _changes(sides(_allocating(1000, -1000, 1000), _allocating(500, 700)))

    assert found == [
        Change("figure", "allocated", 2000.0, 1200.0, detail="bytes"),
        Change("figure", "peak memory", 1000.0, 1200.0, detail="bytes"),
    ]


def test_a_change_of_bytes_that_rounding_explains_is_not_told() -> None:
    assert _changes(sides(_allocating(1_000_000), _allocating(1_000_064))) == []


def test_figures_are_those_of_one_step_if_the_numbers_of_steps_differ() -> None:
    assert _changes(sides(run(("aten::mm", 100), steps=2), run(("aten::mm", 100), steps=3))) == []


def test_recordings_that_lack_events_have_no_exact_changes() -> None:
    assert _changes(sides(run(("aten::mm", 100), ("aten::add", 5)), run(("aten::mm", 100), dropped=1))) == []
