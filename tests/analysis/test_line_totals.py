"""Lines and what they called, on hand-made traces: totals, kernels, memory, stacks and ops of a line."""

import textwrap
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ops_of_lines import CELL, backward, columns, op, self_ns, times
from traces import event, make_trace

from mtprof_nb.analysis.costs import averaged_costs, counted_ops
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.lines.line_costs import OpsOfLine, line_costs, ops_of_line
from mtprof_nb.analysis.lines.user_lines import Chains
from mtprof_nb.model.source_files import is_user_file
from mtprof_nb.model.trace import BACKWARD, FORWARD, SourceLine, Trace
from mtprof_nb.model.trace import ENGINE_PREFIX as ENGINE


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


GRAPH = "/usr/lib/python3/site-packages/torch/autograd/graph.py"
LIBRARY = "/usr/lib/python3/site-packages/library/functions.py"
APPLIED = [("train.py", 5, "train")]
ENGINE_CALLED = [(GRAPH, 979, "_engine_run_backward"), ("train.py", 7, "train"), ("main.py", 1, "<module>")]
IN_FUNCTION = {"phase": "backward", "forward": 0}


def custom_function(*inside: dict[str, Any]) -> Trace:
    """A function that line 5 applied, and what ran in its backward, which line 7 called."""
    lent = {"stack": APPLIED, "stack_is_forward": True, **IN_FUNCTION}
    return make_trace(
        [
            event("Cube", 0, 10, stack=APPLIED),
            event(ENGINE + "CubeBackward", 20, 90, **lent),
            event("CubeBackward", 21, 89, **lent),
            *inside,
        ]
    )


def test_with_stacks_a_backward_of_a_library_belongs_to_the_line_that_applied_it() -> None:
    trace = custom_function(event("cos", 30, 50, stack=[(LIBRARY, 10, "backward"), *ENGINE_CALLED], **IN_FUNCTION))

    assert times(trace) == {5: (10, 70, 0, 0)}
    assert columns(line_costs(trace), "total_ns") == {5: (80,)}


def test_with_stacks_a_backward_of_the_users_has_its_lines_on_top_of_the_line_that_applied_it() -> None:
    trace = custom_function(event("cos", 30, 50, stack=[("model.py", 12, "backward"), *ENGINE_CALLED], **IN_FUNCTION))

    assert times(trace) == {5: (10, 50, 0, 0), 12: (0, 20, 0, 0)}
    assert columns(line_costs(trace), "total_ns") == {5: (80,), 12: (20,)}


def test_with_stacks_a_backward_that_runs_another_keeps_the_line_that_called_it() -> None:
    inner = [(GRAPH, 979, "_engine_run_backward"), ("model.py", 13, "backward"), *ENGINE_CALLED]
    in_cos = {"phase": "backward", "forward": 3}
    trace = custom_function(
        event("cos", 30, 40, stack=[("model.py", 12, "backward"), *ENGINE_CALLED], **IN_FUNCTION),
        event("run_backward", 50, 80, kind="python", stack=inner, **IN_FUNCTION),
        event("GraphRoot", 51, 53, phase="backward", stack=inner),
        event(ENGINE + "CosBackward", 55, 75, stack=inner[1:], stack_is_forward=True, **in_cos),
        event("sin", 60, 70, **in_cos, stack=[(LIBRARY, 10, "backward"), *inner]),
    )

    assert times(trace) == {5: (10, 38, 0, 0), 12: (0, 30, 0, 0), 13: (0, 2, 0, 0)}
    assert columns(line_costs(trace), "total_ns") == {5: (80,), 12: (30,), 13: (2,)}


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
        ("/tmp" + "/torchinductor_me/ab/cabc.py", False),
        ("/home/me/torch_compile_debug/run_1/output_code.py", False),
        ("/home/me/torchinductor_test.py", True),
        ("/home/me/torchinductor_bench/train.py", True),
        ("torch/_functorch/_aot_autograd/subclass_codegen.py:codegen(compiled_function_forward)", False),
        ("<eval_with_key>.5", False),
        ("<string>", False),
        ("<frozen importlib._bootstrap>", False),
    ],
)
def test_a_file_is_the_users_own_unless_it_is_installed_standard_or_generated(file: str, expected: bool) -> None:
    assert is_user_file(file) is expected


def test_the_cache_of_the_compiler_is_generated_however_its_folder_is_spelt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/home/me/compiled/../cache/")
    is_user_file.cache_clear()
    assert not is_user_file("/home/me/cache/triton/kernel.py")
    assert is_user_file("/home/me/cached.py")
    is_user_file.cache_clear()


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
    engine = chains.child(-1, a)
    own = chains.child(chains.child(engine, b), c)
    forward = chains.child(-1, d)

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
    costs, is_op = line_costs(trace), counted_ops(trace)
    events = averaged_costs(trace)

    assert self_ns(costs).sum() == events.self_ns[is_op].sum()
    assert costs.count.sum() == is_op.sum()
    assert (costs.total_ns >= self_ns(costs)).all()
    if events.memory is not None:
        assert costs.memory_bytes is not None
        assert costs.memory_bytes.sum() == (events.memory.self_cpu + events.memory.self_device)[is_op].sum()


@given(programs())
def test_every_event_has_a_known_chain_or_none(trace: Trace) -> None:
    found = attribution(trace)

    assert ((found.chain >= -1) & (found.chain < len(found.chains))).all()
