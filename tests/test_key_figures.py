"""The key figures of a recording, exact on a hand-made trace."""

import json

from traces import event, make_trace

from mtprof_nb.analysis.summary import summary


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
        "phases_ns": {"forward": 40, "backward": 30, "optimizer": 0, "other": 0},
        "ops": 3,
        "steps": 2,
        "threads": 1,
        "device_ns": 25,
        "peak_bytes": 64,
    }
    assert json.loads(json.dumps(found)) == found


def test_what_was_not_recorded_is_none():
    found = summary(make_trace([event("mm", 0, 10), event("mm", 5, 15, thread=2)]))

    assert (found.steps, found.device_ns, found.peak_bytes, found.overhead_ns) == (None, None, None, None)
    assert found.outside_ns is None, "ops ran at once"
