"""The sentence on where the time went, and what a program waited for."""

import numpy as np
from traces import event, make_trace

from mtprof_nb.advice.causes.where_time_went import Waiting, module_times, waiting, where_time_went
from mtprof_nb.model.trace import OutsideOps, SourceLine, Trace

CELL = "<ipython-input-3>"


def _step(forward: int, backward: int, **scalars: object) -> Trace:
    return make_trace(
        [
            event("aten::mm", 0, forward, phase="forward", line=(CELL, 4)),
            event("aten::add", forward, forward + 10, phase="forward", line=(CELL, 5)),
            event("MmBackward0", forward + 10, forward + 10 + backward, phase="backward", line=(CELL, 6)),
        ],
        **scalars,
    )


def test_the_largest_phase_and_the_slowest_line_are_named() -> None:
    trace = _step(17, 73, cells={CELL: "Cell [3]"})

    assert where_time_went(trace) == "73 % of this cell is the backward pass; Cell [3]:6 causes 73 % of the whole."


def test_a_line_with_less_than_a_fifth_is_not_named() -> None:
    trace = make_trace([event("aten::mm", 10 * at, 10 * at + 10, line=("f.py", at)) for at in range(10)])

    assert where_time_went(trace) == "100 % of this recording is spent in ops."


def test_of_a_line_that_causes_nearly_all_the_module_is_named_too() -> None:
    parts = {"Net.layers.0.mlp": 30, "Net.layers.1.mlp": 20, "Net.other.0": 31, "Net.head": 19}

    def recorded(*last_line: object) -> Trace:
        ends = np.cumsum(list(parts.values())).tolist()
        lines = [(CELL, 1)] * 3 + [last_line or (CELL, 1)]
        rows = zip(parts.items(), ends, lines, strict=True)
        ops = [event("mm", end - ns, end, module=path, line=line) for (path, ns), end, line in rows]
        return make_trace(ops, cells={CELL: "Cell [3]"})

    spent = "100 % of this cell is spent in ops; "
    assert where_time_went(recorded()) == (
        f"{spent}Cell [3]:1 causes 100 % of the whole, and Net.layers.*.mlp takes 50 %."
    )
    assert where_time_went(recorded(CELL, 2)).endswith("81 % of the whole, and Net.layers.*.mlp takes 50 %.")
    parts["Net.head"] = 29  # of 110: the other line causes less than four fifths
    assert where_time_went(recorded(CELL, 2)) == f"{spent}Cell [3]:1 causes 74 % of the whole."


def test_parts_of_a_sequence_stay_apart() -> None:
    rows = [event("mm", 0, 60, module="Sequential.0", line=(CELL, 1)), event("mm", 60, 100, module="Sequential.1")]

    assert module_times(make_trace(rows)) == {"Sequential.0": 60, "Sequential.1": 40}


def test_a_program_that_trains_nothing_has_ops_and_no_passes() -> None:
    rows = [event("aten::mm", 0, 60, phase="forward", line=(CELL, 5)), event("aten::sort", 60, 80, phase="other")]

    sentence = where_time_went(make_trace(rows, ended_ns=100, cells={CELL: "Cell [3]"}))
    assert sentence == "80 % of this cell is spent in ops; Cell [3]:5 causes 60 % of the whole."
    # Without the time outside ops, all of the time that is known is spent in ops.
    assert where_time_went(make_trace(rows, dropped=1)) == f"{CELL}:5 causes 75 % of the time in ops of this recording."
    assert where_time_went(make_trace(rows[1:], dropped=1)) == ""


def test_ops_of_no_phase_are_told_apart() -> None:
    rows = [event("aten::sort", 0, 80, phase="other"), event("MmBackward0", 80, 100, phase="backward")]

    assert where_time_went(make_trace(rows)) == (
        "80 % of this recording is in ops of neither forward pass, backward pass nor optimizer."
    )


def test_time_outside_ops_counts_and_belongs_to_its_line() -> None:
    outside = {SourceLine(CELL, 1): OutsideOps(150, 150)}
    trace = _step(20, 20, cells={CELL: "Cell [3]"}, outside=outside, began_ns=0, ended_ns=200)

    assert where_time_went(trace) == (
        "75 % of this cell passed outside ops, in Python code or waiting; Cell [3]:1 causes 75 % of the whole."
    )
    assert waiting(trace) == []


def test_of_a_recording_that_lacks_events_the_lines_tell_the_time_outside_ops() -> None:
    outside = {SourceLine(CELL, 4): OutsideOps(250, 250)}
    trace = _step(20, 20, cells={CELL: "Cell [3]"}, outside=outside, dropped=1)

    assert where_time_went(trace) == (
        "83 % of the recorded time of this cell passed outside ops, in Python code or waiting; "
        "Cell [3]:4 causes 90 % of the whole."
    )


def test_without_the_wall_time_the_shares_are_of_the_time_in_ops() -> None:
    trace = _step(20, 70, dropped=1)

    assert where_time_went(trace).startswith("70 % of the time in ops of this recording is the backward pass")


def test_of_a_recording_without_ops_the_slowest_line_is_told_if_one_is_known() -> None:
    rows = [event("load", 0, 10, kind="scope")]
    outside = {SourceLine(CELL, 4): OutsideOps(80, 80)}

    assert where_time_went(make_trace(rows)) == ""
    assert where_time_went(make_trace(rows, outside=outside, cells={CELL: "Cell [3]"}, ended_ns=100)) == (
        "Cell [3]:4 causes 80 % of this cell."
    )


def test_the_next_of_a_data_loader_is_waited_for() -> None:
    name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    trace = make_trace([event(name, 0, 60, kind="scope"), event("aten::mm", 60, 90)], own_ns=10, ended_ns=100)

    assert waiting(trace) == [Waiting("DataLoader's next", 60)]


def test_waiting_for_a_device_inside_an_op_is_not_time_outside_ops() -> None:
    rows = [
        event("aten::item", 0, 1_000),
        event("cudaStreamSynchronize", 0, 1_000, kind="runtime"),
        event("gemm", 0, 100, kind="kernel", device="CUDA", thread=7),
    ]
    trace = make_trace(rows, ended_ns=2_500)

    assert where_time_went(trace).startswith("60 % of this recording passed outside ops, in Python code or waiting")


def test_a_wait_of_most_of_the_time_outside_ops_is_in_the_sentence() -> None:
    def recorded(next_ns: int, collated_ns: int) -> Trace:
        name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
        rows = [event(name, 0, next_ns, kind="scope"), event("aten::stack", 0, collated_ns)]
        return make_trace([*rows, event("aten::mm", 90, 100)])

    passed = "% of this recording passed outside ops, "
    assert where_time_went(recorded(60, 10)) == f"80 {passed}mostly in DataLoader's next."
    assert where_time_went(recorded(40, 0)) == f"90 {passed}in Python code or waiting."
    assert where_time_went(recorded(60, 30)) == f"60 {passed}in Python code or waiting."


def test_a_device_that_is_mostly_busy_bounds_the_recording_and_communication_is_told() -> None:
    def recorded(communicates: int, computes: int) -> Trace:
        gpu = {"device": "CUDA", "thread": 7, "phase": "backward"}
        rows = [
            event("aten::mm", 0, 2_000, phase="forward", line=(CELL, 4)),
            event("all_reduce", 0, communicates, kind="collective", **gpu),
            event("gemm", 100_000 - computes, 100_000, kind="kernel", **gpu),
        ]
        return make_trace(rows)

    assert where_time_went(recorded(36_000, 36_000)) == "100 % of the time on the GPU is the backward pass."
    assert where_time_went(recorded(48_000, 32_000)) == (
        "60 % of the busy time of the GPU is communication that no computing hides."
    )
    assert "on the GPU" not in where_time_went(recorded(35_000, 35_000))
