"""The key figures of a recording, exact on a hand-made trace."""

import json

from traces import event, make_trace

from mtprof_nb.analysis.stacks.stack_metrics import stack_totals
from mtprof_nb.analysis.summary import summary
from mtprof_nb.tables.averages import key_averages
from mtprof_nb.tables.events import Events
from mtprof_nb.tables.line_table import Lines
from mtprof_nb.tables.operators.operator_rows import GROUPINGS, rows


def test_the_key_figures_of_a_recording():
    trace = make_trace(
        [
            event("linear", 0, 40),
            event("mm", 10, 30),
            event("MmBackward0", 50, 80, phase="backward", step=1),
            event("gemm", 55, 75, kind="kernel", device="CUDA", thread=7),
            event("Memcpy HtoD", 75, 80, kind="copy", device="CUDA", thread=7),
            event("annotation", 50, 80, kind="device_scope", device="CUDA", thread=7),
        ],
        allocations=[{"time_ns": 12, "nbytes": 64}, {"time_ns": 60, "nbytes": -64}],
        ended_ns=100,
        own_ns=5,
        overhead_ns=7,
        label="cell",
    )

    found = summary(trace).to_dict()

    assert found == {
        "label": "cell",
        "wall_ns": 100,
        "in_ops_ns": 70,
        "outside_ns": 25,
        "profiler_ns": 5,
        "overhead_ns": 7,
        "phases_ns": {"forward": 40, "backward": 30, "optimizer": 0, "other": 0, "compiling": 0},
        "ops": 3,
        "steps": 2,
        "threads": 1,
        "device_ns": 25,
        "peak_bytes": 64,
        "notes": [],
    }
    assert json.loads(json.dumps(found)) == found


def test_every_result_counts_the_same_device_time():
    on_device = {"device": "CUDA", "thread": 7, "launcher": 0}
    durations = {"kernel": 20, "copy": 5, "set": 3, "collective": 2, "sync": 100, "device_scope": 1_000}
    launched = [event(kind, 1, 1 + took, kind=kind, **on_device) for kind, took in durations.items()]
    trace = make_trace([event("mm", 0, 50, line=("cell", 1), stack=[("f.py", 1, "f")]), *launched])
    work_ns = 20 + 5 + 3 + 2

    assert summary(trace).device_ns == work_ns
    assert [line.device_ns for line in Lines(trace)] == [work_ns]
    assert Events(trace)[0].device_time_total == work_ns / 1_000
    averages = {row.key: row.self_device_time_total for row in key_averages(trace)}
    assert (averages["mm"], averages["sync"]) == (work_ns / 1_000, 0)
    assert "Self CUDA time total: 0.030us" in key_averages(trace).table()
    assert stack_totals(trace, "self_cuda_time_total")[1].sum() == work_ns
    for grouping in GROUPINGS:
        for show_all in (False, True):
            shown = rows(trace, grouping, show_all)
            assert "device_scope" not in shown.label
            # Of the op, and of the work itself.
            times = 1 if grouping == "kernel" else 2
            assert shown.value["self_device_ns"].sum() == times * work_ns


def test_what_was_not_recorded_is_none():
    found = summary(make_trace([event("mm", 0, 10), event("mm", 5, 15, thread=2)]))

    assert (found.steps, found.device_ns, found.peak_bytes, found.overhead_ns) == (None, None, None, None)
    assert found.outside_ns is None, "ops ran at once"
