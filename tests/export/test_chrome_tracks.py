"""The tracks of a Chrome trace: where an event stands, and the arrows between tracks."""

from pathlib import Path

import numpy as np
from chrome_documents import events_of, written
from traces import event, make_trace


def test_arrows_lead_from_a_forward_op_to_each_backward_node_that_it_made(tmp_path: Path) -> None:
    engine = "autograd::engine::evaluate_function: MulBackward0"
    rows = [
        event("aten::mul", 1_000, 2_000, sequence_nr=1),
        event(engine, 4_000, 9_000, phase="backward", forward=0, thread=2),
        event("MulBackward0", 5_000, 8_000, phase="backward", forward=0, thread=2),
        event("aten::mul", 6_500, 7_500, phase="backward", forward=0, thread=2),
        event("aten::sum", 8_500, 8_700, phase="backward", forward=0, thread=2),
        event("MulBackward0", 12_000, 13_000, phase="backward", forward=0, thread=2),
    ]
    document = written(make_trace(rows, pid=7), tmp_path / "trace.json")

    places = {(one["ph"], one["id"]): (one["tid"], one["ts"]) for one in events_of(document, cat="fwdbwd")}
    assert places == {("s", 1): (1, 1.0), ("f", 1): (2, 5.0), ("s", 2): (1, 1.0), ("f", 2): (2, 12.0)}
    assert {one["bp"] for one in events_of(document, ph="f")} == {"e"}


def test_what_runs_on_a_device_is_on_the_track_of_its_stream_and_leads_back_to_its_op(tmp_path: Path) -> None:
    rows = [
        event("aten::mm", 1_000, 9_000),
        event("cudaLaunchKernel", 2_000, 3_000, kind="runtime", launcher=0),
        event("cudaLaunchKernel", 3_000, 4_000, kind="runtime", launcher=0),
        event("gemm", 20_000, 25_000, kind="kernel", device="CUDA", device_index=1, thread=7, launcher=0, launch=2),
        event("reduce", 25_000, 26_000, kind="kernel", device="CUDA", device_index=1, thread=7, launcher=0, launch=1),
        event("Memcpy HtoD", 30_000, 31_000, kind="copy", device="CUDA", device_index=1, thread=7),
    ]
    document = written(make_trace(rows, pid=99), tmp_path / "trace.json")

    kernel, other = events_of(document, cat="kernel")
    assert (kernel["pid"], kernel["tid"], kernel["ts"]) == (1, 7, 20.0)
    assert kernel["args"]["device"] == 1
    assert kernel["args"]["stream"] == 7
    assert kernel["args"]["External id"] == other["args"]["External id"] == 1
    launches = events_of(document, cat="cuda_runtime")
    assert [launch["args"]["correlation"] for launch in launches] == [2, 3]
    assert (kernel["args"]["correlation"], other["args"]["correlation"]) == (3, 2)
    assert all((launch["pid"], "stream" in launch["args"]) == (99, False) for launch in launches)
    (copy,) = events_of(document, cat="gpu_memcpy")
    assert "correlation" not in copy["args"]
    assert [(one["ph"], one["ts"], one["pid"]) for one in events_of(document, cat="ac2g")] == [
        ("s", 3.0, 99),
        ("s", 2.0, 99),
        ("f", 20.0, 1),
        ("f", 25.0, 1),
    ]
    labels = {one["pid"]: one["args"]["labels"] for one in events_of(document, name="process_labels")}
    assert labels == {99: "CPU", 1: "CUDA 1"}


def test_an_event_that_ends_on_another_thread_has_a_track_of_its_own(tmp_path: Path) -> None:
    rows = [
        event("aten::mm", 1_000, 9_000),
        event("await", 2_000, 20_000, kind="scope", is_async=True),
    ]
    document = written(make_trace(rows), tmp_path / "trace.json")

    assert [one["name"] for one in events_of(document, ph="X", pid=0)] == ["aten::mm"]
    begun, ended = events_of(document, name="await")
    assert [(one["ph"], one["ts"], one["cat"]) for one in (begun, ended)] == [
        ("b", 2.0, "user_annotation"),
        ("e", 20.0, "user_annotation"),
    ]
    assert begun["id"] == ended["id"]


def test_scopes_that_cross_each_other_have_tracks_of_their_own(tmp_path: Path) -> None:
    rows = [
        event("around", 0, 90_000, kind="scope"),
        event("one task", 1_000, 20_000, kind="scope"),
        event("another task", 10_000, 30_000, kind="scope"),
        event("inside", 12_000, 15_000, kind="scope"),
    ]
    document = written(make_trace(rows), tmp_path / "trace.json")

    scopes = events_of(document, cat="user_annotation")
    assert [one["name"] for one in scopes if one["ph"] == "X"] == ["around", "inside"]
    assert [one["name"] for one in scopes if one["ph"] == "b"] == ["one task", "another task"]
    assert [one["ts"] for one in scopes if one["ph"] == "e"] == [20.0, 30.0]


def test_the_calls_that_open_and_close_a_scope_make_room_for_it(tmp_path: Path) -> None:
    rows = [
        event("train.py(3): train", 0, 90_000, kind="python"),
        event("profiler.py(9): __enter__", 1_000, 3_000, kind="python"),
        event("mine", 2_000, 20_000, kind="scope"),
        event("net.py(5): forward", 5_000, 9_000, kind="python"),
        event("profiler.py(19): __exit__", 19_000, 21_000, kind="python"),
        event("elsewhere", 1_500, 2_500, kind="python", thread=2),
    ]
    document = written(make_trace(rows), tmp_path / "trace.json")

    calls = [one["name"] for one in events_of(document, cat="python_function", ph="X")]
    assert calls == ["train.py(3): train", "elsewhere", "net.py(5): forward"]
    crossing = ("profiler.py(9): __enter__", "profiler.py(19): __exit__")
    for phase in "be":
        assert tuple(one["name"] for one in events_of(document, cat="python_function", ph=phase)) == crossing
    assert [one["name"] for one in events_of(document, cat="user_annotation", ph="X")] == ["mine"]
    (span,) = events_of(document, cat="Trace")
    assert span["args"]["Op count"] == 6, "as many as are in the file"


def test_every_event_of_a_thread_lies_on_its_track(tmp_path: Path) -> None:
    rows = [event("a", number, number + 1, thread=100 + number % 7) for number in range(50)]
    trace = make_trace(rows)
    ops = events_of(written(trace, tmp_path / "trace.json"), cat="cpu_op")

    native = np.array([thread.native_id for thread in trace.tracks])
    assert [op["tid"] for op in ops] == native[trace.track].tolist()
