"""The numbers of findings, on hand-made traces."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rows_by_hand import LINE, MS, only, op
from traces import event, make_trace

from mtprof_nb.advice.advising import advise
from mtprof_nb.model.trace import Collections, Frame, OutsideOps, Samples, SourceLine, StackInterner, Trace

LOADING = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
FLOAT, DOUBLE = ((100,), "float"), ((100,), "double")


def test_float64_in_float32_counts_all_ops_on_float64() -> None:
    trace = make_trace([op("aten::mul", 0, 10, FLOAT, DOUBLE), op("aten::exp", 10, 30, DOUBLE), op("x", 30, 100)])

    finding = only(trace)

    assert finding.rule == "float64_in_float32"
    assert finding.line == SourceLine(*LINE)
    assert finding.at_most_ns == 30 * MS
    assert finding.share == 0.3
    assert finding.evidence == (
        "aten::mul gets float32 and float64 tensors, so its result is float64; ops on float64 take 30.0 ms of 100 ms."
    )


def test_a_float64_scalar_does_not_make_float64() -> None:
    trace = make_trace([op("aten::mul", 0, 10, FLOAT, ((), "double")), op("x", 10, 100)])

    assert advise(trace) == ()


def test_float64_everywhere_needs_a_source_that_does_not_ask_for_it() -> None:
    trace = [op("aten::mm", 0, 100, DOUBLE, DOUBLE)]

    assert advise(make_trace(trace)) == ()
    assert advise(make_trace(trace, sources={"cell.py": "x = torch.zeros(3, dtype=torch.float64)"})) == ()
    assert only(make_trace(trace, sources={"cell.py": "y = x @ x  # float64?"})).rule == "float64_everywhere"
    in_module = [op("aten::mm", 0, 100, DOUBLE, DOUBLE, module="Net.layer")]
    assert advise(make_trace(in_module, sources={"cell.py": "y = layer(x)"})) == ()


def _conversions(*directions: tuple[Any, Any]) -> Trace:
    rows = [op("aten::copy_", 10 * at, 10 * at + 5, new, old) for at, (old, new) in enumerate(directions)]
    return make_trace([*rows, op("x", 100, 200)])


def test_conversions_count_in_both_directions() -> None:
    finding = only(_conversions((FLOAT, DOUBLE), (DOUBLE, FLOAT), (FLOAT, DOUBLE), (DOUBLE, FLOAT)))

    assert finding.rule == "converted_to_and_fro"
    assert (finding.found_ns, finding.at_most_ns) == (20 * MS, 40 * MS)  # with the gaps, of 5 ms each
    assert finding.title == "Tensors are converted from float to double and back"


def test_conversions_in_one_direction_or_of_mixed_precision_are_no_finding() -> None:
    half = ((100,), "c10::Half")

    assert advise(_conversions(*[(((100,), "long int"), FLOAT)] * 4)) == ()
    assert advise(_conversions(*[(FLOAT, half), (half, FLOAT)] * 2)) == ()


def test_conversions_that_copy_between_devices_are_no_finding() -> None:
    rows = [
        op("aten::copy_", 10 * at, 10 * at + 9, *pair) for at, pair in enumerate([(FLOAT, DOUBLE), (DOUBLE, FLOAT)] * 2)
    ]
    calls = [
        event("cudaMemcpyAsync", (10 * at + 1) * MS, (10 * at + 8) * MS, kind="runtime", launcher=at) for at in range(4)
    ]

    assert "converted_to_and_fro" not in [one.rule for one in advise(make_trace([*rows, *calls, op("x", 100, 200)]))]


def _ops_with_gaps(count: int, op_ns: int, gap_ns: int, **scalars: Any) -> Trace:
    starts = [at * (op_ns + gap_ns) for at in range(count)]
    return make_trace([event("aten::add", start, start + op_ns, line=LINE) for start in starts], **scalars)


def test_bound_by_python_counts_short_gaps_between_ops() -> None:
    finding = only(_ops_with_gaps(1_000, 5_000, 20_000))

    assert finding.rule == "bound_by_python"
    assert finding.at_most_ns == 999 * 20_000 + 1_000 * 5_000
    assert finding.evidence == ("1,000 ops of 5.00 µs on average; the short gaps between them are 20.0 ms of 25.0 ms.")


def test_long_gaps_and_those_of_the_profiler_are_not_of_python() -> None:
    assert advise(_ops_with_gaps(1_000, 5_000, 150_000)) == ()
    assert advise(_ops_with_gaps(1_000, 5_000, 20_000, overhead_ns=12 * MS)) == ()
    assert advise(_ops_with_gaps(1_000, 60_000, 20_000)) == ()


def test_small_ops_of_a_data_loader_are_its_own_matter() -> None:
    """Loading from 0 to 25 ms with a small op each 25 µs, then 1,000 such ops of the program."""
    loading = [event(LOADING, 0, 25 * MS, kind="scope")]
    loading += [event("aten::detach", at, at + 5_000, line=LINE) for at in range(0, 25 * MS, 25_000)]
    program = [event("aten::add", at, at + 5_000, line=LINE) for at in range(26 * MS, 51 * MS, 25_000)]

    assert "bound_by_python" not in {one.rule for one in advise(make_trace(loading))}
    (finding,) = (one for one in advise(make_trace(loading + program)) if one.rule == "bound_by_python")
    assert finding.evidence.startswith("1,000 ops of 5.00 µs on average; the short gaps between them are 20.0 ms of ")
    assert finding.at_most_ns == 999 * 20_000 + 1_000 * 5_000


def test_what_recording_takes_inside_of_ops_is_not_between_them() -> None:
    rows = []
    for at in range(0, 25_000 * 1_000, 25_000):
        rows += [event("aten::linear", at, at + 5_000, line=LINE)]
        rows += [event("aten::t", at + inner, at + inner + 1_000, line=LINE) for inner in (0, 1_000, 2_000, 3_000)]

    finding = only(make_trace(rows, overhead_ns=20 * MS))  # 4 µs for each event, so at most 7.6 µs for each gap

    assert finding.rule == "bound_by_python"
    assert finding.found_ns == 999 * 20_000 - 1_000 * 7_600 + 1_000 * 5_000
    assert finding.at_most_ns == 999 * 25_000 + 5_000 - 9 * MS  # recording all took at least 9 of the 20 ms


def _tensors(calls: int, *, middle: str = "aten::to", fill_us: int = 4) -> Trace:
    """Calls of `torch.tensor`, one each 20 µs, the first at 10 µs."""
    rows = []
    for at in range(10, 20 * calls + 10, 20):
        made = [
            ("aten::empty", 0, 1),
            (middle, 1 + fill_us, 2 + fill_us),
            ("aten::lift_fresh", 2 + fill_us, 3 + fill_us),
        ]
        rows += [event(name, (at + one) * 1_000, (at + end) * 1_000, line=LINE) for name, one, end in made]
    return make_trace([event("aten::mm", 0, 5_000), *rows, event("aten::mm", 20 * MS, 21 * MS)])


def test_tensors_of_numbers_count_with_the_time_before_each_call() -> None:
    finding = only(_tensors(1_000))

    assert (finding.rule, finding.line) == ("tensors_of_numbers", SourceLine(*LINE))
    assert finding.found_ns == 1_000 * 7_000 + 5_000 + 999 * 13_000
    assert finding.at_most_ns == finding.found_ns + 3_000  # after the last one
    assert finding.evidence == (
        "1,000 calls of torch.tensor or the like on this line take 7.00 ms of 21.0 ms; before that, Python looks "
        "at each number, for at most 13.0 ms."
    )
    assert advise(_tensors(31)) == ()
    assert {one.rule for one in advise(_tensors(1_000, middle="aten::fill_"))} == {"bound_by_python"}


def _tensors_of_threads(*threads: int, every_ms: int, **facts: Any) -> Trace:
    """Of each thread 40 calls of `torch.tensor`, of 1 ms each."""
    made = [("aten::empty", 0, 100), ("aten::to", 800, 900), ("aten::lift_fresh", 900, 1_000)]
    rows = [
        event(name, at * every_ms * MS + start * 1_000, at * every_ms * MS + end * 1_000, thread=thread, line=LINE)
        for thread in threads
        for at in range(1, 41)
        for name, start, end in made
    ]
    return make_trace([event("aten::mm", 0, MS, thread=thread) for thread in threads] + rows, **facts)


def test_tensors_of_numbers_that_threads_make_at_once_count_once() -> None:
    finding = only(_tensors_of_threads(1, 2, 3, every_ms=1))

    assert (finding.at_most_ns, finding.share) == (40 * MS, 40 / 41)
    assert finding.evidence.startswith("120 calls of torch.tensor or the like on this line take 40.0 ms of 41.0 ms; ")


def test_other_work_before_tensors_of_numbers_is_no_look_at_these() -> None:
    finding = only(_tensors_of_threads(1, every_ms=10))

    assert finding.found_ns == 40 * MS + 40 * 3 * MS
    assert finding.at_most_ns == finding.found_ns + 39 * MS // 10  # 100 µs after each but the last
    assert finding.evidence.endswith(" at each number, for at most 120 ms.")
    marked = {SourceLine(*LINE): OutsideOps(own_ns=50 * MS, total_ns=300 * MS)}
    assert only(_tensors_of_threads(1, every_ms=10, outside=marked)).found_ns == 40 * MS + 50 * MS


def _embedding(forward_ms: int, backward_ms: int) -> Trace:
    end = forward_ms + backward_ms
    return make_trace(
        [
            op("aten::embedding", 0, forward_ms, FLOAT, phase="forward", sequence_nr=1),
            event("EmbeddingBackward0", forward_ms * MS, end * MS, phase="backward", sequence_nr=1, forward=0),
        ]
    )


def test_a_slow_backward_is_one_of_more_than_four_times_the_forward() -> None:
    finding = only(_embedding(2, 10))

    assert finding.rule == "slow_backward"
    assert finding.at_most_ns == 12 * MS
    assert advise(_embedding(3, 10)) == ()


LARGE, SMALL = ((2_000, 1_000), "float"), ((1_000, 1_000), "float")


def _chain(*inputs: Any) -> Trace:
    rows = [op(name, at, at + 1, one) for at, (name, one) in enumerate(inputs)]
    return make_trace([*rows, op("aten::mm", len(rows), 10, LARGE)])


def test_a_chain_is_three_pointwise_ops_in_a_row_on_one_large_shape() -> None:
    ops = ["aten::mul", "aten::add_", "aten::exp"]

    finding = only(_chain(*((name, LARGE) for name in ops)))

    assert finding.rule == "pointwise_chain"
    assert finding.at_most_ns == 3 * MS
    assert advise(_chain(*((name, SMALL) for name in ops))) == ()
    impossible = ((2**62, 2**62), "float")
    assert only(_chain(*((name, impossible) for name in ops))).at_most_ns == 3 * MS
    assert advise(_chain(*((name, LARGE) for name in ["aten::mul", "aten::sum", "aten::exp", "aten::add"]))) == ()


def test_one_or_two_ops_again_and_again_are_no_chain() -> None:
    def times(count: int, *names: str) -> Trace:
        return _chain(*((f"aten::{name}", LARGE) for name in names * count))

    assert advise(times(5, "add")) == ()
    assert advise(times(3, "add", "mul")) == ()
    assert only(times(2, "add", "mul", "exp")).at_most_ns == 6 * MS
    assert only(_chain(*((f"aten::{name}", LARGE) for name in ("add", "mul", "add")))).at_most_ns == 3 * MS


@pytest.mark.parametrize(
    ("text", "is_chain"),
    [
        ("r = a * b * c * d", True),
        ("return f(-x[i + 0], (a * b) * (c * d * e))", False),
        ("print((a * b * c * d).sum())", True),
        ("r = a * b", False),
        ("r = a * b * c", False),
        ("a * b; b * c; c * d", False),
        ("r = a * b, n * m * k * 2", False),
        ("r[n * m * k * 2] = a * b", False),
        ("r = a * f(n * m * k * 2)", False),
        ("r = a * b @ c @ d", False),
        ("r = a *", False),
        ("if (a * b * c * d).any(): pass", False),
    ],
)
def test_one_op_again_and_again_is_a_chain_if_the_source_has_nested_operators(text: str, is_chain: bool) -> None:
    def recorded(*inputs: Any) -> Trace:
        rows = [op("aten::mul", at, at + 1, *inputs) for at in range(6)]
        return make_trace(rows, sources={"cell.py": f"def f():\n    {text}\n"})

    assert [one.at_most_ns for one in advise(recorded(LARGE, LARGE))] == [6 * MS] * is_chain
    # A number may be computed by these operators, too.
    assert advise(recorded(LARGE, ((), "Scalar"))) == ()


def _contiguous(after: str, later: str = "aten::mul") -> Trace:
    rows = []
    for at in range(0, 40, 10):
        rows += [
            op("aten::contiguous", at, at + 4, LARGE),
            op("aten::clone", at, at + 3, LARGE),
            op(after, at + 4, at + 6, LARGE),
            op(later, at + 6, at + 8, LARGE),
        ]
    return make_trace(rows)


def test_contiguous_is_needless_before_an_op_that_takes_any_layout() -> None:
    finding = only(_contiguous("aten::sum"))

    assert finding.rule == "needless_contiguous"
    # The ops that follow take 2 ms each, and so do the gaps before the copies.
    assert (finding.found_ns, finding.at_most_ns) == (16 * MS, (4 * 4 + 4 * 2 + 3 * 2) * MS)
    assert advise(_contiguous("aten::view")) == ()
    assert advise(_contiguous("aten::sum", later="aten::view")) == ()
    assert advise(_contiguous("aten::convolution")) == ()


def _steps(*lengths: int) -> Trace:
    ends = np.cumsum(lengths).tolist()
    rows = [
        event("aten::mm", (end - length) * MS, end * MS, step=step)
        for step, (end, length) in enumerate(zip(ends, lengths, strict=True))
    ]
    return make_trace(rows)


def test_a_first_step_is_slow_from_three_times_the_median_on() -> None:
    finding = only(_steps(30, 10, 9, 11))

    assert finding.rule == "slow_first_step"
    assert finding.at_most_ns == 20 * MS
    assert advise(_steps(29, 10, 9, 11)) == ()
    assert advise(_steps(30, 10, 10)) == ()
    assert advise(_steps(10, 30, 10, 10)) == ()


def test_a_first_step_that_is_slow_by_a_garbage_collection_alone_is_not_told() -> None:
    def collected(start: int) -> Trace:
        one = Collections(start_ns=[start * MS], duration_ns=[2 * MS], generation=[2], track=[0])
        return replace(_steps(30, 10, 9, 11), collections=one)

    assert advise(collected(5)) == ()
    assert [finding.rule for finding in advise(collected(31))] == ["slow_first_step"]


def _collections(*lengths: int, source: str = "", **scalars: Any) -> Trace:
    """Collections of all objects every twenty milliseconds, the last one of few, within a hundred, with samples."""
    count = len(lengths)
    found = Collections(
        start_ns=[20 * at * MS for at in range(count)],
        duration_ns=[length * MS for length in lengths],
        generation=[2] * (count - 1) + [0],
        track=[0] * count,
    )
    stacks = StackInterner()
    nodes = [stacks.stack([Frame("cell.py", line, "f"), Frame(json.__file__, 5, "g")]) for line in (2, 7)]
    times = [*found.start_ns.tolist(), 99 * MS]
    samples = Samples(
        time_ns=times,
        taken_ns=times,
        track=[0] * (count + 1),
        stack=[nodes[0]] * (count - 1) + [nodes[1]] * 2,
        is_waiting=[False] * (count + 1),
    )
    facts = {"collections": found, "samples": samples, "stacks": stacks.tree(), "sources": {"cell.py": source}}
    return make_trace([event("aten::mm", 0, 100 * MS)], **facts, **scalars)


def test_garbage_collections_count_as_a_whole() -> None:
    finding = only(_collections(4, 4, 1, 4, 3))

    assert finding.rule == "garbage_collections"
    assert finding.line == SourceLine(*LINE)
    assert finding.at_most_ns == 16 * MS
    assert finding.evidence == (
        "5 garbage collections, 4 of them of all objects, take 16.0 ms of 100 ms, the longest 4.00 ms; "
        "at least half of it on this line."
    )
    assert "gc.freeze()" in finding.fix
    assert advise(_collections(4, 4, 1, 4, 3, between_ops_ns=1)) == ()


def test_one_long_collection_and_those_of_one_half_are_chance() -> None:
    assert advise(_collections(9)) == ()
    assert advise(_collections(9, 1, 1, 9, 3)) == ()
    assert advise(_collections(9, 9, 9, 9, 2)) == ()
    assert advise(_collections(9, 9, 9)) == ()


def test_without_samples_no_line_of_collections_is_known() -> None:
    finding = only(replace(_collections(4, 4, 1, 4, 3), samples=None))

    assert finding.line is None
    assert finding.evidence.endswith("the longest 4.00 ms.")


def test_collections_that_a_line_asks_for_are_told_apart() -> None:
    finding = only(_collections(4, 4, 1, 4, 3, source="\ngc.collect()\n"))

    assert finding.title == "gc.collect() is called here"
    assert "freeze" not in finding.fix


@pytest.mark.parametrize("text", ["batch = rollouts.collect(policy, 512)", "loss = step(x)  # no gc.collect() here"])
def test_another_collect_and_a_comment_ask_for_no_collection(text: str) -> None:
    finding = only(_collections(4, 4, 1, 4, 3, source=f"\n{text}\n"))

    assert finding.title == "Python's garbage collector takes a part of the time"


def test_three_samples_tell_no_line_of_collections() -> None:
    trace = _collections(4, 4, 1, 4, 3)
    assert trace.samples is not None

    assert only(replace(trace, samples=trace.samples.take(np.arange(3)))).line is None
