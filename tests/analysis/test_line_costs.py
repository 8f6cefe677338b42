"""Cost per line on hand-made traces, by phase: every number is known beforehand."""

from ops_of_lines import backward, columns, op, times
from traces import make_trace

from mtprof_nb.analysis.lines.line_costs import line_costs
from mtprof_nb.model.trace import ENGINE_PREFIX as ENGINE


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
