"""Cost per line on hand-made traces: every number is known beforehand."""

import textwrap
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from traces import event, make_trace

from mtprof_nb.analysis.attribution import attribution
from mtprof_nb.analysis.costs import event_costs
from mtprof_nb.analysis.lines import LineCosts, OpsOfLine, line_costs, ops_of_line
from mtprof_nb.analysis.user_lines import Chains
from mtprof_nb.source_files import is_user_file
from mtprof_nb.trace import BACKWARD, FORWARD, OP, SourceLine, Trace

CELL = "<ipython-input-1-0>"
ENGINE = "autograd::engine::evaluate_function: "


def op(name: str, start: int, end: int, line: int | None = None, **facts: Any) -> dict[str, Any]:
    if line is not None:
        facts["line"] = (CELL, line)
    return event(name, start, end, **facts)


def backward(name: str, start: int, end: int, **facts: Any) -> dict[str, Any]:
    """An event of the backward pass, called from line 9."""
    return op(name, start, end, **{"line": 9, "phase": "backward", **facts})


def columns(costs: LineCosts, *names: str) -> dict[int | None, tuple[int, ...]]:
    """The chosen columns by line number, None for what belongs to no line; rows of zeros left out."""
    places: Iterable[SourceLine | None] = (*costs.lines, None)
    rows = {
        place.line if place else None: tuple(int(getattr(costs, name)[index]) for name in names)
        for index, place in enumerate(places)
    }
    return {line: row for line, row in rows.items() if any(row)}


def times(trace: Trace) -> dict[int | None, tuple[int, ...]]:
    """(forward, backward, optimizer, other) of every line."""
    return columns(line_costs(trace), "forward_ns", "backward_ns", "optimizer_ns", "other_ns")


def test_a_forward_op_costs_the_line_that_ran_it_its_self_time() -> None:
    trace = make_trace([op("linear", 0, 100, 3), op("addmm", 10, 70, 3), op("relu", 100, 130, 4)])

    assert times(trace) == {3: (100, 0, 0, 0), 4: (30, 0, 0, 0)}
    assert columns(line_costs(trace), "count") == {3: (2,), 4: (1,)}


def test_a_loop_is_the_sum_of_its_executions() -> None:
    trace = make_trace([op("mul", start, start + 7, 5) for start in range(0, 100, 10)])

    assert columns(line_costs(trace), "self_ns", "count") == {5: (70, 10)}


def test_ops_of_which_no_line_is_known_have_a_row_of_their_own() -> None:
    trace = make_trace([op("mul", 0, 10, 1), op("add", 20, 25), op("sub", 30, 33, thread=2)])

    assert times(trace) == {1: (10, 0, 0, 0), None: (8, 0, 0, 0)}


def test_without_any_line_everything_is_unattributed() -> None:
    trace = make_trace([op("mul", 0, 10), op("add", 20, 25)])

    assert times(trace) == {None: (15, 0, 0, 0)}
    assert line_costs(trace).lines == ()


def test_an_empty_trace_has_no_costs() -> None:
    assert times(make_trace([])) == {}


def test_scopes_and_python_calls_cost_a_line_nothing() -> None:
    trace = make_trace(
        [
            op("step", 0, 100, 2, kind="scope", phase="other"),
            op("mul", 10, 30, 2),
            op("f.py(3): f", 40, 90, 2, kind="python", phase="other"),
        ]
    )

    assert times(trace) == {2: (20, 0, 0, 0)}


def test_a_backward_op_belongs_to_the_line_whose_forward_op_made_its_node() -> None:
    trace = make_trace(
        [
            op("mm", 0, 10, 3),
            op("relu", 10, 15, 4),
            op("ones_like", 20, 22, 9),
            backward(ENGINE + "ReluBackward0", 30, 40, forward=1),
            backward("threshold_backward", 32, 38, forward=1),
            backward(ENGINE + "MmBackward0", 40, 100, forward=0),
            backward("mm", 45, 95, forward=0),
        ]
    )

    assert times(trace) == {3: (10, 60, 0, 0), 4: (5, 10, 0, 0), 9: (2, 0, 0, 0)}


def test_ops_inside_a_node_follow_it_even_where_only_the_node_is_linked() -> None:
    trace = make_trace(
        [
            op("mm", 0, 10, 3),
            backward(ENGINE + "MmBackward0", 40, 100, forward=0),
            backward("mm", 45, 95),
            backward("t", 50, 60),
        ]
    )

    assert times(trace) == {3: (10, 60, 0, 0)}


def test_a_node_evaluated_after_a_hook_takes_its_hook_along() -> None:
    trace = make_trace(
        [
            op("sin", 0, 10, 3),
            backward(ENGINE + "SinBackward0", 20, 60),
            backward("atan", 25, 35, line=5),
            backward("SinBackward0", 40, 55, forward=0),
            backward("mul", 45, 50, forward=0),
        ]
    )

    assert times(trace) == {3: (10, 30, 0, 0), 5: (0, 10, 0, 0)}


def test_a_gradient_is_accumulated_for_the_line_of_the_node_just_before() -> None:
    trace = make_trace(
        [
            op("addmm", 0, 10, 3),
            op("addmm", 10, 20, 4),
            backward(ENGINE + "AddmmBackward0", 30, 40, forward=1),
            backward(ENGINE + "torch::autograd::AccumulateGrad", 40, 43),
            backward("torch::autograd::AccumulateGrad", 41, 42),
            backward(ENGINE + "torch::autograd::AccumulateGrad", 43, 47),
            backward(ENGINE + "AddmmBackward0", 50, 60, forward=0),
            backward(ENGINE + "torch::autograd::AccumulateGrad", 60, 65),
        ]
    )

    assert times(trace) == {3: (10, 15, 0, 0), 4: (10, 17, 0, 0)}


def test_a_gradient_on_another_thread_is_not_the_neighbours() -> None:
    accumulate = ENGINE + "torch::autograd::AccumulateGrad"
    trace = make_trace(
        [
            op("mm", 0, 10, 3),
            op("mm", 10, 20, 4, thread=2),
            backward(ENGINE + "MmBackward0", 30, 40, forward=0),
            backward(ENGINE + "MmBackward0", 32, 42, forward=1, thread=2),
            backward(accumulate, 45, 50),
            backward(accumulate, 47, 50, thread=2),
        ]
    )

    assert times(trace) == {3: (10, 15, 0, 0), 4: (10, 13, 0, 0)}


def test_a_node_older_than_the_recording_stays_with_the_line_that_called_backward() -> None:
    trace = make_trace(
        [
            op("mm", 0, 10, 3),
            backward(ENGINE + "MmBackward0", 20, 30, forward=0),
            backward(ENGINE + "OldBackward0", 30, 37),
            backward(ENGINE + "torch::autograd::AccumulateGrad", 40, 44),
        ]
    )

    assert times(trace) == {3: (10, 10, 0, 0), 9: (0, 11, 0, 0)}


def test_a_graph_run_backward_twice_costs_its_line_twice() -> None:
    trace = make_trace(
        [
            op("mm", 0, 10, 3),
            backward(ENGINE + "MmBackward0", 20, 30, forward=0),
            backward(ENGINE + "MmBackward0", 40, 52, forward=0, line=10),
        ]
    )

    assert times(trace) == {3: (10, 22, 0, 0)}


def test_the_gradient_of_a_gradient_belongs_to_the_first_line() -> None:
    trace = make_trace(
        [
            op("exp", 0, 10, 3),
            backward(ENGINE + "ExpBackward0", 20, 30, forward=0),
            backward("mul", 22, 28, forward=0),
            backward(ENGINE + "MulBackward0", 40, 49, forward=2, line=10),
        ]
    )

    assert times(trace) == {3: (10, 19, 0, 0)}


def test_an_optimizer_op_belongs_to_the_line_of_the_step() -> None:
    trace = make_trace(
        [
            op("Optimizer.step#SGD.step", 0, 100, 7, kind="scope", phase="optimizer"),
            op("_foreach_add_", 10, 60, 7, phase="optimizer"),
        ]
    )

    assert times(trace) == {7: (0, 0, 50, 0)}


def test_a_loader_op_has_its_phase_too() -> None:
    assert times(make_trace([op("stack", 0, 9, 2, phase="other")])) == {2: (0, 0, 0, 9)}


def lines_running(*lines: int) -> list[tuple[str, int, str]]:
    """Marked lines, innermost first: below 10 they stand in functions."""
    return [(CELL, line, "f" if line < 10 else "<module>") for line in lines]


def test_a_line_has_its_own_cost_and_that_of_what_it_called() -> None:
    trace = make_trace(
        [
            event("mm", 0, 10, line_stack=lines_running(3, 20)),
            event("mm", 10, 14, line_stack=lines_running(3, 21)),
            event("add", 20, 25, line_stack=lines_running(20)),
        ]
    )

    assert columns(line_costs(trace), "self_ns", "total_ns") == {3: (14, 14), 20: (5, 15), 21: (0, 4)}


def test_a_line_that_calls_itself_counts_once() -> None:
    trace = make_trace([event("mm", 0, 10, line_stack=lines_running(3, 3, 3, 20))])

    assert columns(line_costs(trace), "self_ns", "total_ns") == {3: (10, 10), 20: (0, 10)}


def test_the_backward_of_a_called_line_is_part_of_its_callers_total() -> None:
    trace = make_trace(
        [
            event("mm", 0, 10, line_stack=lines_running(3, 20)),
            event(ENGINE + "MmBackward0", 20, 50, forward=0, phase="backward", line_stack=lines_running(21)),
        ]
    )

    assert columns(line_costs(trace), "self_ns", "total_ns") == {3: (40, 40), 20: (0, 40)}


def test_a_custom_backward_has_its_own_lines_called_from_the_line_that_applied_it() -> None:
    in_backward = {"phase": "backward", "forward": 0}
    trace = make_trace(
        [
            event("MyFunction", 0, 10, line_stack=lines_running(20)),
            event(ENGINE + "MyFunctionBackward", 20, 60, line_stack=lines_running(21), **in_backward),
            event("MyFunctionBackward", 21, 59, line_stack=lines_running(21), **in_backward),
            event("mul", 30, 50, line_stack=lines_running(5, 21), **in_backward),
            event("mul", 35, 40, line_stack=lines_running(5, 21), **in_backward),
        ]
    )

    assert times(trace) == {20: (10, 20, 0, 0), 5: (0, 20, 0, 0)}
    assert columns(line_costs(trace), "total_ns") == {20: (50,), 5: (20,)}


def test_a_checkpoint_run_again_costs_the_lines_of_its_function_in_the_backward_pass() -> None:
    in_backward = {"phase": "backward", "forward": 0}
    trace = make_trace(
        [
            event("CheckpointFunction", 0, 30, line_stack=lines_running(20)),
            event("mm", 10, 20, line_stack=lines_running(3, 20)),
            event(ENGINE + "CheckpointFunctionBackward", 40, 100, line_stack=lines_running(21), **in_backward),
            event("mm", 50, 60, line_stack=lines_running(3, 21), **in_backward),
            event(
                ENGINE + "MmBackward0",
                *(70, 95),
                phase="backward",
                forward=3,
                line_stack=lines_running(21),
            ),
        ]
    )

    assert times(trace) == {20: (20, 25, 0, 0), 3: (10, 35, 0, 0)}
    assert columns(line_costs(trace), "total_ns") == {20: (90,), 3: (45,)}


def test_a_kernel_costs_the_line_that_launched_it() -> None:
    trace = make_trace(
        [
            op("mm", 0, 10, 3),
            op("relu", 10, 20, 4),
            event("sgemm", 50, 90, kind="kernel", device="CUDA", thread=7, launcher=0),
            event("vectorized", 90, 95, kind="kernel", device="CUDA", thread=7, launcher=1),
        ]
    )

    assert columns(line_costs(trace), "self_ns", "device_ns") == {3: (10, 40), 4: (10, 5)}


def test_memory_is_that_of_the_lines_own_ops() -> None:
    trace = make_trace(
        [
            op("linear", 0, 10, 3, memory=(0, 500)),
            op("addmm", 2, 8, 3, memory=(100, 500)),
            op("free", 20, 30, 4, memory=(500, 200)),
        ]
    )

    assert columns(line_costs(trace), "memory_bytes") == {3: (500,), 4: (-300,)}


def test_an_allocation_is_its_own_threads_however_many_threads_ran_meanwhile() -> None:
    trace = make_trace(
        [op("empty", 0, 10, 3, thread=1), op("mm", 0, 20, 4, thread=2), op("free", 30, 40, 5, thread=1)],
        [
            {"time_ns": 5, "nbytes": 100, "event": 0, "thread": 1},
            {"time_ns": 15, "nbytes": 7, "event": 1, "thread": 2},
            {"time_ns": 25, "nbytes": -7, "thread": 2},
            {"time_ns": 35, "nbytes": -60, "event": 2, "thread": 1},
        ],
    )

    assert columns(line_costs(trace), "memory_bytes") == {3: (100,), 4: (7,), 5: (-60,)}
    assert columns(line_costs(trace), "allocated_bytes") == {3: (100,), 4: (7,)}


def test_memory_and_kernels_are_absent_where_they_were_not_recorded() -> None:
    costs = line_costs(make_trace([op("mm", 0, 10, 3)]))

    assert (costs.memory_bytes, costs.device_ns) == (None, None)


TORCH = "/usr/lib/python3/site-packages/torch/nn/functional.py"


def test_with_stacks_the_innermost_line_of_the_users_own_is_the_line() -> None:
    trace = make_trace(
        [
            event(
                "linear", 0, 10, stack=[(TORCH, 99, "linear"), ("model.py", 12, "forward"), ("train.py", 5, "train")]
            ),
            event("mse", 10, 16, stack=[(TORCH, 50, "mse_loss"), ("train.py", 6, "train")]),
        ]
    )
    costs = line_costs(trace)

    assert set(costs.lines) == {("model.py", 12), ("train.py", 5), ("train.py", 6)}
    assert columns(costs, "self_ns", "total_ns") == {12: (10, 10), 5: (0, 10), 6: (6, 6)}


def test_a_stack_lent_by_the_forward_op_leads_to_the_same_line() -> None:
    forward = [("model.py", 12, "forward"), ("train.py", 5, "train")]
    trace = make_trace(
        [
            event("mm", 0, 10, stack=forward),
            event("mm", 20, 50, stack=forward, stack_is_forward=True, forward=0, phase="backward"),
        ]
    )

    assert times(trace) == {12: (10, 30, 0, 0)}
    assert columns(line_costs(trace), "total_ns") == {12: (40,), 5: (40,)}


def test_marks_and_stacks_of_one_function_agree_on_the_statement() -> None:
    trace = make_trace(
        [
            event(
                "mm", 0, 10, stack=[("model.py", 12, "forward"), (CELL, 6, "<module>")], line_stack=lines_running(20)
            ),
            event("mm", 10, 30, stack=[(CELL, 4, "f"), (CELL, 22, "<module>")], line_stack=lines_running(3, 20)),
            event("add", 30, 35, stack=[(CELL, 22, "<module>")], line_stack=lines_running(3, 20)),
        ]
    )

    assert columns(line_costs(trace), "self_ns", "total_ns") == {12: (10, 10), 3: (25, 25), 20: (0, 35)}


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("<ipython-input-3-abc>", True),
        ("<timed exec>", True),
        ("/home/me/project/model.py", True),
        ("/tmp" + "/ipykernel_7/123.py", True),
        ("model.py", True),
        ("/usr/lib/python3/dist-packages/numpy/core.py", False),
        (TORCH, False),
        (pytest.__file__, False),
        (textwrap.__file__, False),
        ("<string>", False),
        ("<frozen importlib._bootstrap>", False),
    ],
)
def test_a_file_is_the_users_own_unless_it_is_installed_or_standard(file: str, expected: bool) -> None:
    assert is_user_file(file) is expected


def test_the_ops_of_a_line_are_grouped_by_name_and_phase() -> None:
    trace = make_trace(
        [
            op("mm", 0, 10, 3),
            op("mm", 10, 30, 3),
            op("add", 30, 35, 3),
            backward("mm", 40, 90, forward=0),
            op("mm", 90, 95),
        ]
    )

    assert ops_of_line(trace, SourceLine(CELL, 3)) == [
        OpsOfLine("mm", BACKWARD, 1, 50, 3),
        OpsOfLine("mm", FORWARD, 2, 30, 0),
        OpsOfLine("add", FORWARD, 1, 5, 2),
    ]
    assert ops_of_line(trace, None) == [OpsOfLine("mm", FORWARD, 1, 5, 4)]
    assert ops_of_line(trace, SourceLine(CELL, 77)) == []


def test_a_moved_chain_keeps_its_own_lines_on_top_of_another_base() -> None:
    a, b, c, d = (SourceLine(CELL, number) for number in (1, 2, 3, 4))
    chains = Chains()
    engine = chains.called_from(-1, a)
    own = chains.called_from(chains.called_from(engine, b), c)
    forward = chains.called_from(-1, d)

    moved = chains.moved(own, engine, forward)

    assert [chains.lines[line] for line in chains.innermost_first(moved)] == [c, b, d]
    assert chains.moved(own, engine, forward) == moved
    assert (len(chains), chains.lines) == (6, (a, b, c, d))


@st.composite
def programs(draw: st.DrawFn) -> Trace:
    """Nested and overlapping events of any phase, with links to earlier events."""
    rows = []
    for index in range(draw(st.integers(0, 25))):
        start = draw(st.integers(0, 50))
        facts: dict[str, Any] = {
            "phase": draw(st.sampled_from(["forward", "backward", "optimizer", "other"])),
            "kind": draw(st.sampled_from(["op", "op", "op", "scope"])),
            "thread": draw(st.integers(1, 2)),
            "memory": (draw(st.integers(0, 9)), draw(st.integers(0, 9))),
            "forward": draw(st.integers(-1, index - 1)) if index else -1,
        }
        chain = draw(st.lists(st.integers(1, 30), max_size=3))
        rows.append(
            event(
                draw(st.sampled_from(["mm", ENGINE + "MmBackward0", ENGINE + "torch::autograd::AccumulateGrad"])),
                start,
                start + draw(st.integers(0, 20)),
                **({"line_stack": lines_running(*chain)} if chain else {}),
                **facts,
            )
        )
    return make_trace(rows)


@given(programs())
def test_the_rows_sum_up_to_the_trace_whatever_it_holds(trace: Trace) -> None:
    costs, is_op = line_costs(trace), trace.kind == OP
    events = event_costs(trace)

    assert costs.self_ns.sum() == events.self_ns[is_op].sum()
    assert costs.count.sum() == is_op.sum()
    assert (costs.total_ns >= costs.self_ns).all()
    if events.memory is not None:
        assert costs.memory_bytes is not None
        assert costs.memory_bytes.sum() == (events.memory.self_cpu + events.memory.self_device)[is_op].sum()


@given(programs())
def test_every_event_has_a_known_chain_or_none(trace: Trace) -> None:
    found = attribution(trace)

    assert ((found.chain >= -1) & (found.chain < len(found.chains))).all()
