"""Chrome traces that this package wrote are read as those of Kineto are."""

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from traces import event, make_trace

import mtprof_nb as mtp
from mtprof_nb.export import chrome_trace
from mtprof_nb.model.merge import merge
from mtprof_nb.model.schema import schema_of
from mtprof_nb.model.trace import PYTHON, Trace
from mtprof_nb.reading import read
from tests.reading.chrome_files import facts, span, written

#: Columns that no Chrome trace has; its reader finds phases and steps by flows and scopes.
LOST = {
    *("parameter", "is_python_backward", "line_stack", "line", "overload", "flops", "phase", "step"),
    *("memory_before", "memory_after"),
}


def column(trace: Trace, name: str) -> list[Any] | None:
    """A column, with the entries of its table in place of positions."""
    values, about = getattr(trace, name), schema_of(Trace).columns[name]
    if values is None:
        return None
    if not about.table:
        return values.tolist()
    if about.table in schema_of(Trace).records:
        return [None if one < 0 else getattr(trace, about.table).stack(one) for one in values.tolist()]
    if name == "track":
        return [(track.title, *track[2:5]) for track in (trace.tracks[one] for one in values.tolist())]
    beside = [getattr(trace, other) for other in schema_of(Trace).beside.get(about.table, ())]
    tables = [getattr(trace, about.table), *(table for table in beside if table)]
    return [None if one < 0 else tuple(table[one] for table in tables) for one in values.tolist()]


def differences(written: Trace, loaded: Trace) -> list[str]:
    """Names of the columns and fields that differ."""
    columns = schema_of(Trace).columns.keys() - LOST
    found = [name for name in columns if column(written, name) != column(loaded, name)]
    single = ("began_ns", "ended_ns", "trace_id", "dropped", "is_partial", "processes")
    return sorted(found + [name for name in single if getattr(written, name) != getattr(loaded, name)])


def again(trace: Trace, folder: Path, name: str = "trace.json") -> Trace:
    path = folder / name
    chrome_trace.write(trace, path)
    return read(path)


def test_events_come_back_with_the_facts_that_kineto_has(tmp_path: Path) -> None:
    frames = [("model.py", 7, "forward"), ("a;b.py", 3, "main")]
    facts: dict[str, Any] = {
        "shapes": ((2, 3), ((4,), (5,)), ()),
        "dtypes": ("float", "TensorList", "Scalar"),
        "strides": ((3, 1), ((1,), (1,)), ()),
        "values": ([None, None, 2.5], {"mode": "fast"}),
        "module": "Net.layers.0",
        "sequence_nr": 7,
    }
    rows = [
        event("aten::mm", 1_001, 5_003, stack=frames, **facts),
        event("crossed", 1_000, 9_000, kind="scope", stack=frames[1:], is_async=True, phase="other"),
        event("plain", 5_100, 9_950, kind="scope", phase="other", thread=9),
        event("overlapping", 4_000, 12_000, kind="scope", is_async=True, phase="other"),
        event("cudaLaunchKernel", 2_000, 2_500, kind="runtime", launcher=0, extra={"cbid": "211"}),
        event("MmBackward0", 9_100, 9_900, phase="backward", forward=0, sequence_nr=7, shapes=()),
        event(
            *("gemm", 3_000, 8_000),
            kind="kernel",
            device="CUDA",
            device_index=1,
            thread=7,
            launcher=0,
            launch=4,
            extra={"grid": "[1, 2, 3]"},
            phase="forward",
        ),
    ]
    metadata = {"note": '"mine"', "distributedInfo": '{"rank": 3, "world_size": 4}'}
    scalars = {"pid": 77, "rank": 3, "host": "node7", "metadata": metadata, "trace_id": "AB"}
    trace = make_trace(rows, began_ns=1_000, ended_ns=12_000, dropped=4, **scalars)

    loaded = again(trace, tmp_path)

    assert differences(trace, loaded) == []


def _who(trace: Trace) -> dict[str, tuple[Any, ...]]:
    """For each event the rank of its process, the rank in the metadata of that, and the device."""
    found: dict[str, tuple[Any, ...]] = {}
    names = [trace.names[name] for name in trace.name.tolist()]
    for name, track in zip(names, trace.track.tolist(), strict=True):
        process = trace.processes[trace.tracks[track].process]
        told = json.loads(dict(process.metadata)["distributedInfo"])["rank"]
        found[name] = (process.rank, told, trace.tracks[track].device)
    return found


@pytest.mark.parametrize("pids", [(100, 101), (101, 100), (100, 100)])
def test_events_and_devices_of_several_processes_keep_their_rank(tmp_path: Path, pids: tuple[int, int]) -> None:
    def process(rank: int) -> Trace:
        # The first one begins last.
        rows = [
            event(f"op of {rank}", 1_000 - rank, 5_000, thread=10 + rank),
            event(f"launch of {rank}", 2_000 - rank, 2_500, kind="runtime", launcher=0, thread=10 + rank),
            event(
                *(f"kernel of {rank}", 3_000 - rank, 8_000),
                kind="kernel",
                device="CUDA",
                device_index=rank,
                thread=7,
                launch=1,
                launcher=0,
            ),
        ]
        return make_trace(rows, pid=pids[rank], rank=rank, metadata={"distributedInfo": f'{{"rank": {rank}}}'})

    trace = merge([process(0), process(1)])

    loaded = again(trace, tmp_path)

    assert _who(loaded) == {
        f"{what} of {rank}": (rank, rank, f"CUDA:{rank}" if what == "kernel" else "")
        for rank in (0, 1)
        for what in ("op", "launch", "kernel")
    }
    for name in ("name", "kind", "start_ns", "duration_ns", "device_index", "launch", "launcher"):
        assert column(loaded, name) == column(trace, name), name


def test_events_that_cross_others_and_what_scopes_launched_come_back(tmp_path: Path) -> None:
    rows = [
        event("train.py(3): train", 0, 90_000, kind="python", phase="other"),
        event("profiler.py(9): step", 1_000, 30_000, kind="python", phase="other"),
        event("ProfilerStep#4", 20_000, 80_000, kind="scope", phase="other", step=4, sequence_nr=-1),
        event("cudaMemcpyAsync", 40_000, 41_000, kind="runtime", launcher=2, phase="other", step=4),
        event(
            *("Memcpy HtoD", 50_000, 51_000),
            kind="copy",
            device="CUDA",
            thread=7,
            launcher=2,
            launch=3,
            phase="other",
            step=4,
        ),
        event("await", 60_000, 85_000, kind="scope", is_async=True, phase="other", step=4),
    ]
    trace = make_trace(rows)

    loaded = again(trace, tmp_path)

    for name in ("name", "kind", "start_ns", "duration_ns", "is_async", "launch", "launcher"):
        assert column(loaded, name) == column(trace, name), name


def test_steps_are_complete_events_and_scopes_that_cross_them_are_asynchronous(tmp_path: Path) -> None:
    rows = [
        event("ProfilerStep#1", 10_000, 50_000, kind="scope", step=1),
        event("epoch", 20_000, 80_000, kind="scope", step=1),
        event("ProfilerStep#2", 50_000, 90_000, kind="scope", step=2),
        event("aten::mm", 55_000, 60_000, step=2),
    ]
    trace = make_trace(rows, began_ns=10_000, ended_ns=90_000)

    loaded = again(trace, tmp_path)

    assert differences(trace, loaded) == ["is_async"]
    assert facts(loaded, "step", "is_async") == [
        ("ProfilerStep#1", 1, False),
        ("epoch", 1, True),
        ("ProfilerStep#2", 2, False),
        ("aten::mm", 2, False),
    ]
    # Other tools look for steps among complete events.
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    phases = {one["name"]: one["ph"] for one in events if one.get("cat") == "user_annotation"}
    assert phases == {"ProfilerStep#1": "X", "ProfilerStep#2": "X", "epoch": "e"}


def test_the_stack_of_a_forward_op_is_known_as_that_in_its_backward(tmp_path: Path) -> None:
    model, train = [("model.py", 7, "forward"), ("train.py", 3, "main")], [("train.py", 4, "main")]
    rows = [
        event("aten::mm", 1_000, 2_000, stack=model, sequence_nr=7),
        event("MmBackward0", 5_000, 7_000, stack=model, stack_is_forward=True, forward=0, sequence_nr=7),
        event("aten::add_", 8_000, 9_000, stack=train),
    ]
    trace = make_trace(rows)

    loaded = again(trace, tmp_path)

    assert differences(trace, loaded) == []
    assert column(loaded, "stack_is_forward") == [False, True, False]


def test_a_window_from_zero_comes_back(tmp_path: Path) -> None:
    window = span("PyTorch Profiler (0)", 0, 100, "Trace", "PyTorch Profiler", "Spans")
    trace = read(written(tmp_path, [window, span("aten::mm", 5, 10)], "first.json"))

    loaded = again(trace, tmp_path)

    assert (loaded.began_ns, loaded.ended_ns, loaded.windows) == (0, 100_000, ((0, 100_000),))
    assert loaded.notes == ()


def test_tracks_of_one_number_stay_apart(tmp_path: Path) -> None:
    device = {"device": "CUDA", "thread": 7, "phase": "forward"}
    rows = [
        event("gemm", 1_000, 5_000, kind="kernel", launcher=-1, **device),
        event("Stream Wait", 2_000, 6_000, kind="sync", **device),
        event("Reduce_Inline", 3_000, 7_000, kind="device_scope", **device),
    ]
    trace = make_trace(rows)
    names = ("stream 7", "stream 7, syncs", "Plane 1")
    tracks = tuple(trace.tracks[0]._replace(name=name) for name in names)
    trace = replace(trace, track=np.arange(3, dtype=np.int32), tracks=tracks)

    assert column(again(trace, tmp_path), "track") == [(name, "stream", 0, "CUDA:0") for name in names]


def test_a_recording_of_torch_comes_back(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    names = (one.name for one in fields(mtp.Trace.__dataclass_fields__["recorded"].default_factory))
    # A Chrome trace has no samples.
    flags = {name: True for name in names if name != "with_python"}
    with mtp.profile(hook="kineto", **flags) as prof:
        for _ in range(2):
            with mtp.record_function("forward"):
                loss = net(torch.ones(2, 4)).sum()
            loss.backward()
            optimizer.step()
            prof.step()
    prof.add_metadata("who", "me")

    prof.export_chrome_trace(tmp_path / "trace.json.gz")
    results = mtp.load(tmp_path / "trace.json.gz")

    # A Chrome trace has stacks of ops and scopes; of a Python call it has the caller.
    own, other = (trace.take(trace.kind != PYTHON) for trace in (prof.trace, results.trace))
    assert differences(own, other) == []
    assert _lines(results) == _lines(prof)
    assert facts(other, "phase") == facts(own, "phase")
    assert results.summary().peak_bytes == prof.summary().peak_bytes
    assert (own.allocations is None) == (other.allocations is None)
    for name, values in (own.allocations.columns if own.allocations is not None else {}).items():
        assert getattr(other.allocations, name).tolist() == values.tolist(), name


def _lines(results: Any) -> dict[tuple[str, int], tuple[int, int]]:
    """Calls and time in ops of each line."""
    return {(row.file, row.line): (row.count, row.self_ns) for row in results.lines() if row.count}
