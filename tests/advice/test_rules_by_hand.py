"""The numbers of findings, on hand-made traces."""

from typing import Any

from traces import Row, event, make_trace

from mtprof_nb.advice.advising import advise
from mtprof_nb.advice.finding import Finding
from mtprof_nb.model.trace import SourceLine, Trace

MS = 1_000_000
LINE = ("cell.py", 2)


def _only(trace: Trace) -> Finding:
    (finding,) = advise(trace)
    return finding


def _op(name: str, start: int, end: int, *inputs: tuple[tuple[int, ...], str], **facts: Any) -> Row:
    shapes, dtypes = tuple(shape for shape, _ in inputs), tuple(dtype for _, dtype in inputs)
    return event(name, start * MS, end * MS, shapes=shapes, dtypes=dtypes, line=LINE, **facts)


FLOAT, DOUBLE = ((100,), "float"), ((100,), "double")


def test_float64_in_float32_counts_all_ops_on_float64() -> None:
    trace = make_trace([_op("aten::mul", 0, 10, FLOAT, DOUBLE), _op("aten::exp", 10, 30, DOUBLE), _op("x", 30, 100)])

    finding = _only(trace)

    assert finding.rule == "float64_in_float32"
    assert finding.line == SourceLine(*LINE)
    assert finding.at_most_ns == 30 * MS
    assert finding.share == 0.3
    assert finding.evidence == (
        "aten::mul gets float32 and float64 tensors, so its result is float64; ops on float64 take 30.0 ms of 100 ms."
    )


def test_a_float64_scalar_does_not_make_float64() -> None:
    trace = make_trace([_op("aten::mul", 0, 10, FLOAT, ((), "double")), _op("x", 10, 100)])

    assert advise(trace) == ()


def test_float64_everywhere_needs_a_source_that_does_not_ask_for_it() -> None:
    trace = [_op("aten::mm", 0, 100, DOUBLE, DOUBLE)]

    assert advise(make_trace(trace)) == ()
    assert advise(make_trace(trace, sources={"cell.py": "x = torch.zeros(3, dtype=torch.float64)"})) == ()
    assert _only(make_trace(trace, sources={"cell.py": "y = x @ x"})).rule == "float64_everywhere"


def _conversions(*directions: tuple[Any, Any]) -> Trace:
    rows = [_op("aten::copy_", 10 * at, 10 * at + 5, new, old) for at, (old, new) in enumerate(directions)]
    return make_trace([*rows, _op("x", 100, 200)])


def test_conversions_count_in_both_directions() -> None:
    finding = _only(_conversions((FLOAT, DOUBLE), (DOUBLE, FLOAT), (FLOAT, DOUBLE), (DOUBLE, FLOAT)))

    assert finding.rule == "converted_to_and_fro"
    assert finding.at_most_ns == 20 * MS
    assert finding.title == "Tensors are converted from float to double and back"


def test_conversions_in_one_direction_or_of_mixed_precision_are_no_finding() -> None:
    half = ((100,), "c10::Half")

    assert advise(_conversions(*[(((100,), "long int"), FLOAT)] * 4)) == ()
    assert advise(_conversions(*[(FLOAT, half), (half, FLOAT)] * 2)) == ()


def _ops_with_gaps(count: int, op_ns: int, gap_ns: int, **scalars: Any) -> Trace:
    starts = [at * (op_ns + gap_ns) for at in range(count)]
    return make_trace([event("aten::add", start, start + op_ns, line=LINE) for start in starts], **scalars)


def test_bound_by_python_counts_short_gaps_between_ops() -> None:
    finding = _only(_ops_with_gaps(1_000, 5_000, 20_000))

    assert finding.rule == "bound_by_python"
    assert finding.at_most_ns == 999 * 20_000
    assert finding.evidence == ("1,000 ops of 5.00 µs on average; the short gaps between them are 20.0 ms of 25.0 ms.")


def test_long_gaps_and_those_of_the_profiler_are_not_of_python() -> None:
    assert advise(_ops_with_gaps(1_000, 5_000, 150_000)) == ()
    assert advise(_ops_with_gaps(1_000, 5_000, 20_000, overhead_ns=12 * MS)) == ()
    assert advise(_ops_with_gaps(1_000, 60_000, 20_000)) == ()


def _embedding(forward_ms: int, backward_ms: int) -> Trace:
    end = forward_ms + backward_ms
    return make_trace(
        [
            _op("aten::embedding", 0, forward_ms, FLOAT, phase="forward", sequence_nr=1),
            event("EmbeddingBackward0", forward_ms * MS, end * MS, phase="backward", sequence_nr=1, forward=0),
        ]
    )


def test_a_dear_backward_is_one_of_more_than_four_times_the_forward() -> None:
    finding = _only(_embedding(2, 10))

    assert finding.rule == "dear_backward"
    assert finding.at_most_ns == 10 * MS
    assert advise(_embedding(3, 10)) == ()


def _loop(indices: list[int]) -> Trace:
    rows = [
        _op("aten::select", at, at + 1, ((64, 8), "float"), ((), "Scalar"), values=((None, 0, index), {}))
        for at, index in enumerate(indices)
    ]
    return make_trace(rows)


def test_a_loop_over_elements_takes_one_index_after_the_other() -> None:
    finding = _only(_loop(list(range(40))))

    assert finding.rule == "loop_over_elements"
    assert finding.at_most_ns == 40 * MS
    assert "takes 40 elements of a tensor [64, 8]" in finding.evidence
    assert advise(_loop(list(range(31)))) == ()
    assert advise(_loop([0] * 40)) == ()
    assert advise(_loop([7 * at % 64 for at in range(40)])) == ()


def _kernels(count: int, length: int, gap: int, kind: str = "kernel", name: str = "gemm") -> list[Row]:
    """Kernels in milliseconds with gaps between them, each launched right before it starts."""
    rows = []
    for at in range(count):
        start = at * (length + gap) * MS + MS
        rows += [
            event("cudaLaunchKernel", start - 1_000, start - 500, kind="runtime"),
            event(name, start, start + length * MS, kind=kind, device="CUDA", thread=7, launch=2 * at),
        ]
    return rows


def test_a_device_waits_for_the_host_from_thirty_percent_of_its_span_on() -> None:
    finding = _only(make_trace(_kernels(51, 1, 1)))

    assert finding.rule == "device_waits_for_host"
    assert finding.at_most_ns == 50 * MS
    assert advise(make_trace(_kernels(49, 1, 1))) == ()
    assert advise(make_trace(_kernels(51, 3, 1))) == ()


def test_a_device_that_waits_for_input_does_not_wait_for_launches() -> None:
    waits = event("enumerate(DataLoader)#_SingleProcess", 0, 40 * MS, kind="scope", thread=2)

    assert _only(make_trace([*_kernels(51, 1, 1), waits])).rule == "waits_for_input"


def test_copies_count_that_come_from_pageable_memory() -> None:
    rows = [event("aten::mm", 0, 100 * MS)]
    pageable = _kernels(2, 10, 0, "copy", "Memcpy HtoD (Pageable -> Device)")
    pinned = _kernels(2, 10, 0, "copy", "Memcpy HtoD (Pinned -> Device)")

    finding = _only(make_trace([*pageable, *rows]))

    assert finding.rule == "pageable_copies"
    assert finding.at_most_ns == 20 * MS
    assert advise(make_trace([*pinned, *rows])) == ()


def test_communication_counts_while_nothing_is_computed() -> None:
    reduce = event("ncclKernel", 50 * MS, 70 * MS, kind="collective", device="CUDA", thread=8)
    alone = event("gemm", 0, 60 * MS, kind="kernel", device="CUDA", thread=7)
    beside = event("gemm", 0, 100 * MS, kind="kernel", device="CUDA", thread=7)

    finding = _only(make_trace([alone, reduce]))

    assert finding.rule == "exposed_communication"
    assert finding.at_most_ns == 10 * MS
    assert advise(make_trace([beside, reduce])) == ()
