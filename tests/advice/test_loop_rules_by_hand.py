"""The numbers of findings about loops over elements, on hand-made traces."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rows_by_hand import LINE, MS, only, op
from traces import Row, event, make_trace

from mtprof_nb.advice.advising import advise
from mtprof_nb.model.trace import OutsideOps, SourceLine, Trace


def _loop(indices: list[int]) -> Trace:
    rows = [
        op("aten::select", at, at + 1, ((64, 8), "float"), ((), "Scalar"), values=((None, 0, index), {}))
        for at, index in enumerate(indices)
    ]
    return make_trace(rows)


def test_a_loop_over_elements_takes_one_index_after_the_other() -> None:
    finding = only(_loop(list(range(40))))

    assert finding.rule == "loop_over_elements"
    assert finding.at_most_ns == 40 * MS
    assert "takes 40 elements of a tensor [64, 8]" in finding.evidence
    assert advise(_loop(list(range(31)))) == ()
    assert advise(_loop([0] * 40)) == ()
    assert advise(_loop([7 * at % 64 for at in range(40)])) == ()


def test_an_index_may_come_again_and_passes_may_differ_in_length() -> None:
    outer = only(_loop([at // 3 for at in range(120)]))

    assert outer.at_most_ns == 120 * MS
    assert outer.evidence.startswith("The line takes 40 elements of a tensor [64, 8] one after the other; ")
    # The second pass takes two elements, and the time after its last one is that of one more.
    assert only(_loop([*range(40), 62, 63])).at_most_ns == 42 * MS
    assert advise(_loop([*range(31), 62, 63])) == ()


def _decoding(read: str, written: tuple[int, ...], behind: int, line: int = 2) -> Trace:
    """Passes of 4 ms: an element is read, or all up to it; an op; and one is written, on this line or another."""
    rows = []
    for at in range(40):
        taken = (None, 0, at) if read == "select" else (None, 0, 0, at + 1, 1)
        rows += [op(f"aten::{read}", 4 * at, 4 * at + 1, ((64, 8), "float"), values=(taken, {}))]
        rows += [op("aten::tanh", 4 * at + 1, 4 * at + 2, ((8,), "float"))]
        target = op("aten::select", 4 * at + 2, 4 * at + 3, ((64, 8), "float"), values=((None, 0, at + behind), {}))
        write = op("aten::copy_", 4 * at + 3, 4 * at + 4, (written, "float"))
        rows += [{**row, "line": ("cell.py", line)} for row in (target, write)]
    return make_trace(rows)


def test_a_loop_whose_elements_are_computed_from_the_ones_before_is_no_finding() -> None:
    assert only(_decoding("select", (8,), behind=0)).at_most_ns == 160 * MS
    assert advise(_decoding("select", (8,), behind=1)) == ()
    assert advise(_decoding("select", (8,), behind=1, line=3)) == ()
    assert advise(_decoding("slice", (8,), behind=1)) == ()
    # Copied into another tensor, the element is read.
    assert only(_decoding("select", (5,), behind=1)).at_most_ns == 160 * MS


def _loop_with(name: str, op_us: int, **facts: Any) -> Trace:
    rows = []
    for at in range(40):
        rows += [op("aten::select", at, at, ((64, 8), "float"), values=((None, 0, at), {}))]
        rows += [event(name, at * MS, at * MS + op_us * 1_000, line=LINE, **facts)]
    return make_trace(rows)


def test_a_loop_over_batches_is_none_over_elements() -> None:
    assert only(_loop_with("aten::mm", 100)).rule == "loop_over_elements"
    assert only(_loop_with("aten::mm", 400)).rule == "loop_over_elements"
    assert advise(_loop_with("aten::mm", 600)) == ()
    assert advise(_loop_with("aten::add_", 100, phase="optimizer")) == ()


def test_ops_that_are_long_on_a_device_make_a_loop_over_batches() -> None:
    def recorded(kernel_us: int) -> Trace:
        """Each pass runs a small op on the host, and a kernel."""
        rows: list[Row] = []
        for at in range(40):
            start = at * MS
            rows += [op("aten::select", at, at, ((64, 8), "float"), values=((None, 0, at), {}))]
            rows += [event("aten::conv2d", start, start + 30_000, line=LINE)]
            kernel = {"kind": "kernel", "device": "CUDA", "thread": 7, "launcher": len(rows) - 1}
            rows += [event("gemm", start + 10_000, start + 10_000 + kernel_us * 1_000, **kernel)]
        return make_trace(rows, began_ns=0, ended_ns=40 * MS)

    assert {finding.rule for finding in advise(recorded(100))} >= {"loop_over_elements"}
    assert advise(recorded(900)) == ()


def test_a_loop_in_a_custom_backward_has_a_line_of_its_own() -> None:
    def recorded(line: tuple[str, int]) -> Trace:
        rows = [
            event("Own", 0, 10 * MS, phase="forward", sequence_nr=1, line=("cell.py", 9)),
            event("OwnBackward", 10 * MS, 50 * MS, phase="backward", sequence_nr=1, forward=0, line=("cell.py", 9)),
        ]
        facts = {"phase": "backward", "forward": 0, "shapes": ((64, 8),), "dtypes": ("float",), "line": line}
        rows += [
            event("aten::select", (10 + at) * MS, (11 + at) * MS, values=((None, 0, at), {}), **facts)
            for at in range(40)
        ]
        return make_trace(rows)

    finding = only(recorded(LINE))

    assert (finding.rule, finding.at_most_ns, finding.line) == ("loop_over_elements", 40 * MS, SourceLine(*LINE))
    assert advise(recorded(("cell.py", 9))) == ()


def test_the_loop_counts_as_a_whole_and_so_does_its_backward_pass() -> None:
    rows = [
        op("aten::select", 2 * at, 2 * at + 1, ((64, 8), "float"), values=((None, 0, at), {}), sequence_nr=at)
        for at in range(40)
    ]
    rows += [event("SelectBackward0", 80 * MS, 90 * MS, phase="backward", sequence_nr=39, forward=39)]

    finding = only(make_trace(rows))

    assert finding.at_most_ns == 90 * MS
    assert finding.evidence.endswith("the loop takes 80.0 ms of 90.0 ms; its backward pass takes 10.0 ms.")


def _iteration(source: str, op_us: int = 100, more: Sequence[Row] = (), **facts: Any) -> Trace:
    """Tensor.__iter__ takes all elements in one unbind of 4 ms; then each pass of the loop runs an op."""
    tensor = {"shapes": ((40, 8),), "dtypes": ("float",), "line": LINE}
    rows = [event("aten::unbind", 0, 4 * MS, **tensor)]
    rows += [
        event("aten::select", at * 100_000, (at + 1) * 100_000, values=((None, 0, at), {}), **tensor)
        for at in range(40)
    ]
    starts = [4 * MS + op_us * 1_000 * at for at in range(41)]
    rows += [event("aten::mul", start, start + op_us * 1_000, line=("cell.py", 3), **facts) for start in starts[:40]]
    rows += [event("aten::exp", starts[40], starts[40] + 2 * MS, line=("cell.py", 4))]
    return make_trace([*rows, *more], sources={"cell.py": source})


ITERATION = "%%mtprofile\nfor row in x:\n    y = row * 2\nz = exp(y)\n"


def test_a_loop_over_a_tensor_counts_with_the_lines_in_it() -> None:
    finding = only(_iteration(ITERATION))

    assert (finding.rule, finding.at_most_ns) == ("loop_over_elements", 8 * MS)
    assert finding.evidence.endswith("the loop takes 8.00 ms of 10.0 ms.")
    marked = {SourceLine("cell.py", line): OutsideOps(0, 0, MS) for line in (2, 3, 4)}
    marked_trace = replace(_iteration(ITERATION), outside=marked, own_ns=3 * MS)
    assert only(marked_trace).evidence.endswith("the loop takes 6.00 ms of 7.00 ms.")
    # The gradient of a parameter that the loop uses is added up after it, in the backward pass.
    added = [event("AccumulateGrad", 18 * MS, 20 * MS, line=("cell.py", 3), phase="backward")]
    assert only(_iteration(ITERATION, more=added)).evidence.endswith("the loop takes 8.00 ms of 20.0 ms.")
    # The first line runs an op before the loop, once more for a pass that a full recording does not contain.
    before = [event("aten::embedding", 18 * MS, 20 * MS, line=LINE)]
    assert only(_iteration(ITERATION, more=before)).evidence.endswith("the loop takes 8.00 ms of 20.0 ms.")
    # Elements that no loop takes are none of its business.
    assert advise(_iteration("%%mtprofile\nrows = x.unbind()\ny = rows[0] * 2\nz = exp(y)\n")) == ()
    assert only(_iteration("\ny = [f(row) for row in x]\n# f\n")).at_most_ns == 4 * MS


def test_a_loop_over_a_tensor_of_batches_is_none_over_elements() -> None:
    assert advise(_iteration(ITERATION, op_us=300)) == ()
    assert advise(_iteration(ITERATION, phase="optimizer")) == ()


def test_of_many_loops_the_longest_is_told() -> None:
    """Passes over tensors of 20 shapes on one line; the seventh takes twice as long as each other one."""
    rows, at = [], 0
    for size in range(40, 60):
        length = 2 if size == 46 else 1
        for index in range(40):
            select = op("aten::select", at, at + length, ((size, 8), "float"), values=((None, 0, index), {}))
            rows, at = [*rows, select], at + length

    finding = only(make_trace(rows))

    assert finding.at_most_ns == 80 * MS
    assert "takes 40 elements of a tensor [46, 8]" in finding.evidence
