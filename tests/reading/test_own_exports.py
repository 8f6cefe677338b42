"""Chrome traces that this package wrote come back as far as the format can carry them."""

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
from mtprof_nb.model.outside_ops import OutsideOps, SourceLine
from mtprof_nb.model.schema import schema_of
from mtprof_nb.model.trace import PYTHON, Trace
from mtprof_nb.reading import read
from tests.reading.chrome_files import span, written

#: Columns that a Chrome trace has no place for.
LOST = {"parameter", "is_python_backward", "line_stack"}


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
    single = (
        *("began_ns", "ended_ns", "windows", "label", "trace_id", "dropped", "dropped_exactly", "is_partial", "hooks"),
        *("processes", "process_facts", "recorded", "notes", "lines_note", "cells", "outside"),
        *("overhead_ns", "own_ns", "between_ops_ns"),
    )
    return sorted(found + [name for name in single if getattr(written, name) != getattr(loaded, name)])


def again(trace: Trace, folder: Path, name: str = "trace.json") -> Trace:
    path = folder / name
    chrome_trace.write(trace, path)
    return read(path)


def test_everything_that_a_chrome_trace_can_carry_comes_back(tmp_path: Path) -> None:
    frames = [("model.py", 7, "forward"), ("a;b.py", 3, "main")]
    facts: dict[str, Any] = {
        "shapes": ((2, 3), ((4,), (5,)), ()),
        "dtypes": ("float", "TensorList", "Scalar"),
        "strides": ((3, 1), ((1,), (1,)), ()),
        "values": ([None, None, 2.5], {"mode": "fast"}),
        "overload": "Tensor",
        "module": "Net.layers.0",
        "line": ("cell.py", 4),
        "flops": 24,
        "sequence_nr": 7,
    }
    rows = [
        event("aten::mm", 1_001, 5_003, stack=frames, memory=(0, 64), **facts),
        event("crossed", 1_000, 9_000, kind="scope", stack=frames[1:], is_async=True, phase="other"),
        event("plain", 5_100, 9_950, kind="scope", phase="other", thread=9),
        event("overlapping", 4_000, 12_000, kind="scope", is_async=True, phase="other"),
        event("cudaLaunchKernel", 2_000, 2_500, kind="runtime", launcher=0, extra={"cbid": "211"}),
        event("MmBackward0", 9_100, 9_900, phase="backward", forward=0, sequence_nr=7, step=1, shapes=()),
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
    scalars = {"pid": 77, "rank": 3, "host": "node7", "metadata": metadata, "label": "run", "trace_id": "AB"}
    of_recording = {
        "overhead_ns": 900,
        "own_ns": 400,
        "between_ops_ns": 100,
        "hooks": ("dispatch",),
        "notes": ("Instants, left out: 3.",),
        "lines_note": "lines of one file are missing",
        "outside": {SourceLine("cell.py", 4): OutsideOps(2_000, 3_000)},
        "cells": {"cell.py": "Cell [3]"},
        "windows": ((1_000, 5_000), (6_000, 12_000)),
        "dropped": 4,
        "dropped_exactly": False,
    }
    trace = make_trace(rows, began_ns=1_000, ended_ns=12_000, **scalars, **of_recording)

    loaded = again(trace, tmp_path)

    assert differences(trace, loaded) == []


def test_several_processes_with_devices_come_back(tmp_path: Path) -> None:
    def process(rank: int) -> Trace:
        # The first one begins last.
        rows = [
            event("aten::mm", 1_000 - rank, 5_000, thread=10 + rank),
            event("cudaLaunchKernel", 2_000 - rank, 2_500, kind="runtime", launcher=0, thread=10 + rank),
            event(
                "gemm",
                3_000 - rank,
                8_000,
                kind="kernel",
                device="CUDA",
                device_index=rank,
                thread=7,
                launch=1,
                launcher=0,
            ),
        ]
        info = {"distributedInfo": f'{{"rank": {rank}}}'}
        window = {"began_ns": 900, "ended_ns": 9_000, "windows": ((900, 9_000),), "own_ns": 50 + rank}
        return make_trace(rows, pid=100, rank=rank, host=f"node{rank}", metadata=info, moved_bytes=None, **window)

    trace = merge([process(0), process(1)])
    trace = replace(trace, processes=tuple(one._replace(label=f"TP{one.rank}") for one in trace.processes))

    loaded = again(trace, tmp_path)

    assert trace.process_facts
    assert differences(trace, loaded) == []


def _ranks(pids: tuple[int, int]) -> Trace:
    """Two ranks without devices, of which the later one begins first."""

    def process(rank: int) -> Trace:
        began_ns = 5_000_000 - 4_000_000 * rank
        window = {"began_ns": began_ns, "ended_ns": began_ns + 900, "windows": ((began_ns, began_ns + 900),)}
        rows = [event(f"op of rank {rank}", began_ns, began_ns + 500)]
        metadata = {"distributedInfo": f'{{"rank": {rank}}}'}
        who = {"pid": pids[rank], "rank": rank, "host": f"node{rank}", "metadata": metadata}
        return make_trace(rows, **who, **window, own_ns=50 + rank)

    return merge([process(0), process(1)])


def _who(trace: Trace) -> dict[str, tuple[Any, ...]]:
    """For each event the rank, the host and the number of its process, the rank in its metadata and its own time."""
    found: dict[str, tuple[Any, ...]] = {}
    for name, process in zip(trace.name.tolist(), trace.processes_of(trace.track).tolist(), strict=True):
        pid, rank, host, _, metadata = trace.processes[process]
        told = json.loads(dict(metadata)["distributedInfo"])["rank"]
        found[trace.names[name]] = (rank, host, pid, told, trace.process_facts[process].own_ns)
    return found


@pytest.mark.parametrize("pids", [(100, 101), (101, 100), (100, 100)])
def test_a_rank_that_begins_before_an_earlier_one_keeps_its_name(tmp_path: Path, pids: tuple[int, int]) -> None:
    trace = _ranks(pids)

    loaded = again(trace, tmp_path)

    assert differences(trace, loaded) == []
    expected = {f"op of rank {rank}": (rank, f"node{rank}", pids[rank], rank, 50 + rank) for rank in (0, 1)}
    assert _who(loaded) == expected
    # Another tool may write the lines that name processes in another order.
    path = tmp_path / "trace.json"
    document = json.loads(path.read_text())
    document["traceEvents"].reverse()
    path.write_text(json.dumps(document))
    assert _who(read(path)) == expected


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


def test_a_step_and_a_scope_that_cross_come_back_as_they_were(tmp_path: Path) -> None:
    rows = [
        event("ProfilerStep#1", 10_000, 50_000, kind="scope", phase="other", step=1),
        event("epoch", 20_000, 80_000, kind="scope", phase="other", step=1),
        event("ProfilerStep#2", 50_000, 90_000, kind="scope", phase="other", step=2),
        event("aten::mm", 55_000, 60_000, step=2, phase="other"),
    ]
    trace = make_trace(rows, began_ns=10_000, ended_ns=90_000, windows=((10_000, 90_000),))

    path = tmp_path / "trace.json"
    loaded = again(trace, tmp_path, path.name)

    assert differences(trace, loaded) == []
    # Other tools look for steps among complete events.
    events = json.loads(path.read_text())["traceEvents"]
    phases = {one["name"]: one["ph"] for one in events if one.get("cat") == "user_annotation"}
    assert phases == {"ProfilerStep#1": "X", "ProfilerStep#2": "X", "epoch": "e"}


def test_a_window_from_zero_comes_back(tmp_path: Path) -> None:
    window = span("PyTorch Profiler (0)", 0, 100, "Trace", "PyTorch Profiler", "Spans")
    trace = read(written(tmp_path, [window, span("aten::mm", 5, 10)], "first.json"))

    loaded = again(trace, tmp_path)

    assert (loaded.began_ns, loaded.ended_ns, loaded.windows) == (0, 100_000, ((0, 100_000),))
    assert loaded.notes == ()


@pytest.mark.parametrize(
    "said", [7, {"own_ns": "4"}, {"windows": [[1]]}, {"process_facts": [[], []]}, {"processes": [[1], [2]]}]
)
def test_facts_of_a_recording_that_are_malformed_are_told(tmp_path: Path, said: Any) -> None:
    path = written(tmp_path, [span("aten::mm", 1, 5)], mtprof_nb=said)

    loaded = read(path)

    assert loaded.own_ns == 0
    assert loaded.windows == ((1_000, 6_000),)
    assert loaded.notes == ("Facts of the recording that are not as this package writes them, left out: 1.",)


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


@pytest.mark.parametrize("hook", ["kineto", "dispatch"])
def test_a_recording_of_torch_comes_back(tmp_path: Path, hook: str) -> None:
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    names = (one.name for one in fields(mtp.Trace.__dataclass_fields__["recorded"].default_factory))
    # A Chrome trace has no samples.
    flags = {name: True for name in names if name != "with_python"}
    with mtp.profile(hook=hook, **flags) as prof:
        for _ in range(2):
            with mtp.record_function("forward"):
                loss = net(torch.ones(2, 4)).sum()
            loss.backward()
            optimizer.step()
            prof.step()
    prof.add_metadata("who", "me")

    prof.export_chrome_trace(tmp_path / "trace.json.gz")
    loaded = read(tmp_path / "trace.json.gz")
    results = mtp.load(tmp_path / "trace.json.gz")

    lost = "Not part of a Chrome trace: parameters of the optimizer. A file of save() has them."
    notes = (lost,) if prof.trace.parameters else ()
    assert results.summary() == replace(prof.summary(), notes=notes)
    assert results.lines().table() == prof.lines().table()
    told = replace(prof.trace, notes=notes)
    assert results.to_markdown() == mtp.results.loaded_recording.Recording(told).to_markdown()
    # A Chrome trace has stacks of ops and scopes; of a Python call it has the caller.
    assert differences(told, loaded) == (["stack"] if hook == "kineto" else [])
    own, other = (trace.take(trace.kind != PYTHON) for trace in (told, loaded))
    assert differences(own, other) == []
    assert (own.allocations is None, len(own.allocations or ())) == (
        other.allocations is None,
        len(other.allocations or ()),
    )
    for name, values in (own.allocations.columns if own.allocations is not None else {}).items():
        assert getattr(other.allocations, name).tolist() == values.tolist(), name
