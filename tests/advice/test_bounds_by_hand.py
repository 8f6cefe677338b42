"""Upper bounds on hand-made traces: all that a fix removes, and what it makes faster."""

import numpy as np
from rows_by_hand import LINE, MS, only, op
from traces import Row, event, make_trace

from mtprof_nb.advice.advising import advise
from mtprof_nb.analysis.program_time.recording_cost import recording_ns
from mtprof_nb.analysis.program_time.spent_time import saved_ns, with_backward
from mtprof_nb.model.trace import Frame, SourceLine, Trace

US, MIB = 1_000, 1 << 20
FLOAT, DOUBLE = ((100,), "float"), ((100,), "double")


def _saved(rows: list[Row], *chosen: int, **scalars: int) -> int:
    trace = make_trace(rows, **scalars)
    return saved_ns(trace, np.isin(np.arange(len(trace)), chosen))


def test_with_an_op_go_the_gaps_before_and_after_it() -> None:
    rows = [event("a", 0, 10 * US), event("b", 30 * US, 40 * US), event("c", 90 * US, 100 * US)]

    assert _saved(rows, 1) == 80 * US
    assert _saved(rows, 0) == 30 * US
    assert _saved(rows, 0, 1, 2) == _saved(rows, 0, 2) + 10 * US == 100 * US
    assert _saved(rows, 2, ended_ns=120 * US) == 80 * US
    nested = [event("a", 0, 40 * US), event("b", 10 * US, 20 * US), event("c", 90 * US, 100 * US)]
    assert _saved(nested, 1) == 10 * US


def test_of_a_long_gap_only_as_much_goes_as_the_op_took() -> None:
    def between(op_us: int) -> list[Row]:
        start = 2_000 * US
        return [event("a", 0, US), event("b", start, start + op_us * US), event("c", 9_000 * US, 9_001 * US)]

    assert _saved(between(10), 1) == (100 + 10 + 100) * US
    assert _saved(between(300), 1) == 3 * 300 * US


def test_other_threads_have_gaps_of_their_own() -> None:
    rows = [event("a", 0, 10 * US), event("b", 20 * US, 30 * US, thread=2), event("c", 40 * US, 50 * US)]

    assert _saved(rows, 0) == 40 * US
    assert _saved(rows, 1) == 50 * US


def test_the_engine_takes_all_of_the_time_between_nodes_and_adds_up_gradients_for_the_node_before() -> None:
    node, adds = {"phase": "backward", "forward": 0}, "autograd::engine::evaluate_function: torch::autograd::Accumulat"
    rows = [
        event("aten::mul", 0, 10 * US, sequence_nr=1),
        event("MulBackward0", 500 * US, 510 * US, sequence_nr=1, **node),
        event(f"{adds}eGrad", 550 * US, 560 * US, phase="backward"),
        event(f"{adds}eGrad", 570 * US, 580 * US, phase="backward"),
        event("SumBackward0", 600 * US, 610 * US, phase="backward"),
        event(f"{adds}eGrad", 620 * US, 630 * US, phase="backward"),
    ]
    trace = make_trace(rows)

    chosen = with_backward(trace, np.arange(len(trace)) == 0)

    assert chosen.tolist() == [True, True, True, True, False, False]
    assert saved_ns(trace, chosen) == 600 * US


def test_the_time_to_record_the_chosen_events_is_not_saved() -> None:
    rows = [event("a", 0, 100 * US), event("b", 10 * US, 90 * US), event("c", 100 * US, 200 * US)]
    trace = make_trace(rows, overhead_ns=30 * US)  # 10 µs for each event, of which 4.5 µs are sure

    assert recording_ns(trace) == 3 * 4_500
    assert saved_ns(trace, np.arange(3) == 0) == 100 * US - 2 * 4_500
    two_threads = make_trace([*rows, event("d", 0, 100 * US, thread=2)], overhead_ns=40 * US)
    assert recording_ns(two_threads) == 3 * 4_500


def _to_and_fro(*between: Row) -> Trace:
    """Four conversions of 1 ms, to double and back, with ops on double between the first two; then 20 ms of others."""
    copies = [(0, DOUBLE, FLOAT), (9, FLOAT, DOUBLE), (10, DOUBLE, FLOAT), (11, FLOAT, DOUBLE)]
    rows = [op("aten::copy_", at, at + 1, new, old) for at, new, old in copies]
    return make_trace([*rows, *between, op("x", 12, 32)])


def test_ops_on_the_type_that_a_fix_gives_up_can_be_faster_after_it() -> None:
    finding = only(_to_and_fro(op("aten::exp", 1, 9, DOUBLE)))

    assert (finding.rule, finding.found_ns, finding.at_most_ns) == ("converted_to_and_fro", 4 * MS, 12 * MS)
    assert finding.evidence == (
        "4 conversions in both directions, of tensors of one size, take 4.00 ms, and ops on these tensors between "
        "them 8.00 ms, of 32.0 ms."
    )
    # Of the type that stays, tensors of another size are none that were converted.
    assert only(_to_and_fro(op("aten::exp", 1, 9, ((7,), "float")))).at_most_ns == 4 * MS
    assert only(_to_and_fro(op("aten::exp", 1, 9, ((7,), "double")))).at_most_ns == 12 * MS


def test_a_finding_is_worth_a_word_by_what_was_found_and_not_by_its_bound() -> None:
    def recorded(others_ms: int) -> Trace:
        rows = [op("aten::copy_", 2 * at, 2 * at + 1, *pair) for at, pair in enumerate([(DOUBLE, FLOAT)] * 2)]
        rows += [op("aten::copy_", 4 + 2 * at, 5 + 2 * at, *pair) for at, pair in enumerate([(FLOAT, DOUBLE)] * 2)]
        return make_trace([*rows, op("x", 8, 8 + others_ms)])

    assert only(recorded(72)).share == 0.1
    assert advise(recorded(73)) == ()


def _kept_by_lines(first: int, inner: int, last: int) -> Trace:
    """Five steps that keep 1 MiB each, of these lines, with an optimizer that keeps 4 MiB since the first."""
    rows: list[Row] = []
    held: list[Row] = []
    for at, line in enumerate([first, inner, inner, inner, last]):
        start = 10 * at * MS
        rows += [event("aten::relu", start, start + 5 * MS, line=("cell.py", line))]
        rows += [event("Optimizer.step#SGD.step", start + 5 * MS, start + 9 * MS, kind="scope")]
        rows += [event("aten::zeros", start + 6 * MS, start + 7 * MS, line=("cell.py", 9))]
        held += [{"time_ns": start + 1, "nbytes": MIB, "address": at + 1, "event": 3 * at}]
    held.insert(1, {"time_ns": 6 * MS + 1, "nbytes": 4 * MIB, "address": 99, "event": 2})
    return make_trace(rows, held)


def test_memory_that_grows_counts_in_the_first_step_and_the_last_if_the_same_line_keeps_it() -> None:
    found = only(_kept_by_lines(2, 2, 2))

    assert (found.rule, found.at_most_bytes) == ("grows_each_step", 5 * MIB)
    assert "In each of 3 steps about 1.00 MiB" in found.evidence
    assert only(_kept_by_lines(3, 2, 2)).at_most_bytes == 4 * MIB
    assert only(_kept_by_lines(3, 2, 4)).at_most_bytes == 3 * MIB


def test_memory_outside_ops_that_grows_counts_with_its_own_line_alone() -> None:
    rows = [event("Optimizer.step#SGD.step", 10 * at * MS, (10 * at + 9) * MS, kind="scope") for at in range(5)]
    held = [
        {
            "time_ns": 10 * at * MS + 1,
            "nbytes": MIB,
            "address": at + 1,
            "event": -1,
            "stack": [Frame("cell.py", 2, "f")],
        }
        for at in range(5)
    ]
    held[0] |= {"nbytes": 4 * MIB, "stack": [Frame("cell.py", 1, "f")]}

    finding = only(make_trace([op("aten::relu", 0, 1), *rows], held))

    assert (finding.rule, finding.at_most_bytes) == ("grows_each_step", 4 * MIB)
    assert finding.line == SourceLine("cell.py", 2)


def test_a_loop_over_elements_counts_with_the_engine_between_its_nodes_and_the_op_that_puts_results_together() -> None:
    """40 passes of 2 ms; a stack of 4 ms; then a node each 2 ms, that of the stack first; 10 ms of other ops."""
    rows = [
        op("aten::select", 2 * at, 2 * at + 1, ((64, 8), "float"), values=((None, 0, at), {}), sequence_nr=at)
        for at in range(40)
    ]
    parts = {"shapes": (((8,),) * 40, ()), "dtypes": ("", ""), "line": ("cell.py", 4)}
    rows += [event("aten::stack", 80 * MS, 84 * MS, sequence_nr=40, **parts)]
    rows += [
        event(
            "Backward0", (84 + 2 * at) * MS, (85 + 2 * at) * MS, phase="backward", sequence_nr=40 - at, forward=40 - at
        )
        for at in range(41)
    ]
    rows += [op("aten::mm", 165, 175)]

    finding = only(make_trace(rows))

    assert finding.rule == "loop_over_elements"
    assert finding.at_most_ns == 165 * MS
    assert finding.evidence.endswith("the loop takes 80.0 ms of 175 ms; its backward pass takes 45.0 ms.")


def test_the_mask_of_a_dropout_is_kept_by_the_graph() -> None:
    rows = [
        event("aten::relu" if at % 2 == 0 else "aten::empty_like", at * MS, (at + 1) * MS, line=LINE, phase="forward")
        for at in range(11)
    ]
    for at in range(0, 11, 2):
        rows[at]["sequence_nr"] = at
    held = [{"time_ns": at * MS + 1, "nbytes": MIB, "address": at + 1, "event": at} for at in range(11)]
    held += [{"time_ns": 20 * MS, "nbytes": -MIB, "address": at + 1, "event": -1} for at in range(11)]

    finding = only(make_trace(rows, held, ended_ns=21 * MS))

    assert (finding.rule, finding.at_most_bytes) == ("missing_no_grad", 9 * MIB)


def test_indexing_by_a_tensor_is_slow_on_devices_alone() -> None:
    def recorded(*kernels: Row) -> Trace:
        node = {"phase": "backward", "sequence_nr": 1, "forward": 0}
        rows = [
            event("aten::index", 0, 2 * MS, line=LINE, sequence_nr=1),
            event("IndexBackward0", 2 * MS, 99 * MS, **node),
        ]
        return make_trace([*rows, *kernels])

    kernel = event("indexing_backward", 3 * MS, 99 * MS, kind="kernel", device="CUDA", thread=7, launcher=1)
    assert advise(recorded()) == ()
    assert only(recorded(kernel)).rule == "slow_backward"


def test_the_time_to_record_the_ops_of_an_optimizer_is_not_saved() -> None:
    step = {"phase": "optimizer", "line": LINE}
    rows = [event("Optimizer.step#Adam.step", 0, 10 * MS, kind="scope", **step)]
    rows += [event("aten::add_", at * 100 * US, at * 100 * US + 50 * US, **step) for at in range(40)]
    trace = make_trace([*rows, event("aten::mm", 10 * MS, 20 * MS)], overhead_ns=42 * 10 * US)

    finding = only(trace)

    assert (finding.rule, finding.at_most_ns) == ("parameters_one_by_one", 10 * MS - 41 * 4_500)


def test_calls_of_a_driver_in_the_first_half_may_be_saved_too() -> None:
    """Steps of 10 ms, each with a call that takes 1 ms; those of the second half show that they recur."""
    rows = [event("gemm", 0, 100 * MS, kind="kernel", device="CUDA", thread=7)]
    rows += [event("cudaFree", 10 * at * MS, (10 * at + 1) * MS, kind="runtime") for at in range(10)]

    finding = only(make_trace(rows))

    assert (finding.rule, finding.found_ns, finding.at_most_ns) == ("device_allocations", 5 * MS, 10 * MS)
