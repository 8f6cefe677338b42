"""Time by stack, at each node of the tree."""

import numpy as np
import pytest
from traces import event, make_trace

from mtprof_nb.analysis.stacks.stack_metrics import METRICS, depths, stack_totals, with_called
from mtprof_nb.model.trace import Frame, StackInterner, StackTree, Trace

MAIN, RUN, STEP = ("main.py", 1, "<module>"), ("run.py", 5, "run"), ("step.py", 9, "step")


@pytest.fixture
def trace() -> Trace:
    """An op in `step`, called by `run`, with an op inside of it; and one op straight from `run`."""
    rows = [
        event("aten::linear", 0, 10_000, stack=(STEP, RUN, MAIN)),
        event("aten::mm", 2_000, 8_000, stack=(STEP, RUN, MAIN)),
        event("aten::add", 20_000, 25_000, stack=(RUN, MAIN)),
        event("aten::mul", 30_000, 31_000),
    ]
    return make_trace(rows)


def _by_stack(tree: StackTree, values: np.ndarray) -> dict[str, int]:
    return {
        ";".join(frame.function for frame in reversed(tree.stack(node))): int(values[node]) for node in range(len(tree))
    }


def test_self_time_is_booked_to_the_whole_stack_and_total_time_to_every_caller(trace: Trace) -> None:
    tree, own = stack_totals(trace)

    assert _by_stack(tree, own) == {"<module>": 0, "<module>;run": 5_000, "<module>;run;step": 10_000}
    assert _by_stack(tree, with_called(tree.parent, own)) == {
        "<module>": 15_000,
        "<module>;run": 15_000,
        "<module>;run;step": 10_000,
    }


def test_the_time_of_a_device_is_that_of_the_kernels_an_op_launched() -> None:
    rows = [
        event("aten::mm", 0, 10_000, stack=(RUN, MAIN)),
        event("gemm", 20_000, 27_000, kind="kernel", device="CUDA", thread=7, launcher=0),
        event("gemm", 30_000, 30_500, kind="kernel", device="CUDA", thread=7, launcher=0),
        event("lost", 40_000, 90_000, kind="kernel", device="CUDA", thread=7),
    ]
    trace = make_trace(rows)

    assert stack_totals(trace, "self_cuda_time_total")[1].tolist() == [0, 7_500]
    assert stack_totals(trace, "self_cpu_time_total")[1].tolist() == [0, 10_000]
    assert stack_totals(trace, "self_xpu_time_total")[1].tolist() == [0, 0]
    assert stack_totals(trace, "self_privateuse1_time_total")[1].tolist() == [0, 0]


def test_an_unknown_metric_is_refused_with_the_list_of_those_there_are(trace: Trace) -> None:
    with pytest.raises(ValueError, match=r"metric should be one of: \['self_cpu_time_total', 'self_cuda_time_total'"):
        stack_totals(trace, "cpu_time")
    assert len(METRICS) == 4


def test_without_stacks_the_missing_flag_is_named() -> None:
    with pytest.raises(ValueError, match=r"no stacks were recorded: use profile\(with_stack=True\)"):
        stack_totals(make_trace([event("a", 0, 1)]))


def test_a_recursion_of_thousands_is_summed() -> None:
    interner = StackInterner()
    interner.stack(Frame("f.py", line, "f") for line in range(5_000))
    parent = interner.tree().parent

    assert depths(parent).tolist() == list(range(5_000))
    assert with_called(parent, np.ones(5_000, np.int64)).tolist() == list(range(5_000, 0, -1))


def test_branches_are_summed_apart() -> None:
    parent = np.array([-1, 0, 0, 1, -1, 4], np.int32)

    assert with_called(parent, np.array([1, 2, 4, 8, 16, 32])).tolist() == [15, 10, 4, 8, 48, 32]


def test_an_empty_tree_has_no_totals() -> None:
    trace = make_trace([event("a", 0, 1, stack=())])

    assert stack_totals(trace)[1].tolist() == []
