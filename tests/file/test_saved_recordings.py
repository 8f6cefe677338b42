"""`save` and `load`: everything that a recording holds comes back."""

from __future__ import annotations

import pickle
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from synthetic import training_run
from trace_strategies import traces
from traces import differences, event, make_trace, with_defaults

import mtprof_nb as mtp
from mtprof_nb.export import recording_file
from mtprof_nb.model.checks import problem_of
from mtprof_nb.model.compilations import Compilation, GraphBreak
from mtprof_nb.model.schema import schema_of
from mtprof_nb.model.trace import (
    Collective,
    Frame,
    OutsideOps,
    Process,
    Recorded,
    SourceLine,
    StackInterner,
    Trace,
    Track,
    empty_trace,
)
from mtprof_nb.recording import Recording


def saved(trace: Trace, folder: Path) -> Trace:
    """`trace` after a way through a file."""
    Recording(trace).save(folder / "run.mtp")
    return mtp.load(folder / "run.mtp").trace


def full_trace() -> Trace:
    """A trace in which hardly a field has its default."""
    frames = (("train.py", 3, "step"), ("train.py", 9, "<module>"))
    facts = {"stack": frames, "line_stack": frames[:1], "line": ("train.py", 3), "shapes": ((2, 3), ((4,), ()))}
    facts |= {"strides": ((3, 1), ((1,), ())), "values": ([1, 2.5, None], {"dim": True}), "module": "net.0"}
    facts |= {"flops": 12, "overload": "out", "memory": (0, 1 << 40), "extra": {"bytes": "8"}, "record_function": 7}
    facts |= {"moved_bytes": 8, "collective": Collective("all_reduce", "0", 2, "float", 3, 3), "parameter": "w"}
    facts |= {"sequence_nr": 5, "is_python_backward": True, "is_async": True, "device_index": 1, "step": 4}
    facts |= {"compilation": Compilation("0/0", "f", breaks=(GraphBreak("train.py", 3, "print"),))}
    rows = [
        event("aten::mm", 1_700_000_000_000_000_001, 1_700_000_000_000_000_901, **facts, launcher=-1, launch=-1),
        event("MmBackward", 1_700_000_000_000_001_000, 1_700_000_000_000_002_000, phase="backward", forward=0),
        event("gemm", 1_700_000_000_000_003_000, 1_700_000_000_000_009_000, kind="kernel", device="CUDA", launcher=0),
    ]
    allocations = [{"time_ns": 1_700_000_000_000_000_100, "nbytes": 64, "address": -5, "event": 0, "reserved": 1 << 33}]
    return replace(
        make_trace(rows, allocations, pid=7, rank=1, host="node1", metadata={"seed": "3"}, label="Cell [3]"),
        recorded=Recorded(True, True, True, True, False),
        windows=((1, 2), (3, 4)),
        hooks=("kineto", "candle"),
        trace_id="ABC",
        notes=("2 events were not understood",),
        lines_note="some lines are missing",
        outside={SourceLine("train.py", 3): OutsideOps(5, 9)},
        sources={"train.py": "a = 1\nb = '\ud800\u2028'\n"},
        dropped=3,
        dropped_exactly=False,
        is_partial=True,
        overhead_ns=77,
        own_ns=5,
        between_ops_ns=2,
    )


@given(traces())
def test_any_trace_comes_back(trace: Trace):
    assert problem_of(trace) == ""
    with tempfile.TemporaryDirectory() as folder:
        assert differences(saved(trace, Path(folder)), trace) == []


def test_every_field_comes_back(tmp_path):
    assert differences(saved(full_trace(), tmp_path), full_trace()) == []


@pytest.mark.parametrize(
    "make",
    [
        empty_trace,
        lambda: make_trace([]),
        lambda: make_trace([event("mm", 0, 0)]),
        lambda: make_trace([event("mm", 0, 5)], allocations=[]),
        lambda: training_run(3_000),
        lambda: replace(make_trace([event("a", 1, 2)]), processes=(Process(1, 0), Process(2, 1))),
        lambda: replace(make_trace([event("a", 1, 2)]), stacks=StackInterner().tree()),
    ],
)
def test_traces_of_all_sizes_come_back(make: Callable[[], Trace], tmp_path: Path):
    assert differences(saved(make(), tmp_path), make()) == []


EDGES = (0, -1, 1, 127, 128, -128, -129, 255, 256, 1 << 15, 1 << 31, -(1 << 31), 1 << 33, (1 << 63) - 1, -(1 << 63))


@pytest.mark.parametrize("absent", [0, -1])
@pytest.mark.parametrize("first", EDGES)
def test_any_number_of_a_column_comes_back(first: int, absent: int, tmp_path: Path):
    numbers = [first, absent, *EDGES, absent, first]
    rows = [event("a", moment, moment) for moment in range(len(numbers))]
    trace = replace(make_trace(rows), sequence_nr=numbers, correlation_id=numbers[::-1], flops=[*numbers[1:], first])

    assert differences(saved(trace, tmp_path), trace) == []


def test_a_loaded_column_cannot_be_written_to(tmp_path):
    trace = saved(full_trace(), tmp_path)

    with pytest.raises(ValueError, match="read-only"):
        trace.start_ns[0] = 1


def test_a_long_column_of_one_value_needs_no_memory_and_is_kept_as_such(tmp_path):
    trace = make_trace([event("a", moment, moment + 1, step=3) for moment in range(5_000)])
    almost = replace(trace, step=[3] * 4_999 + [4])

    assert trace.step.strides == (0,)
    assert (trace.start_ns.strides, almost.step.strides) == ((8,), (4,))
    assert (trace.step.tolist(), almost.step.tolist()) == ([3] * 5_000, [3] * 4_999 + [4])
    with pytest.raises(ValueError, match="read-only"):
        trace.step[0] = 1
    for kept in (saved(trace, tmp_path), pickle.loads(pickle.dumps(trace)), replace(trace, label="other")):
        assert kept.step.strides == (0,)
    assert differences(saved(trace, tmp_path), trace) == []


def test_equal_traces_are_equal_files(tmp_path):
    for name in ("one", "other"):
        recording_file.write(full_trace(), tmp_path / name)

    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_every_column_is_a_member_that_numpy_reads(tmp_path):
    recording_file.write(full_trace(), tmp_path / "run.mtp")
    with zipfile.ZipFile(tmp_path / "run.mtp") as archive:
        members = {name: np.load(archive.open(name)) for name in archive.namelist() if name.endswith(".npy")}

    assert set(members) >= {f"{name}.npy" for name in schema_of(Trace).columns}
    assert members["kind.npy"].tolist() == [0, 0, 4]
    assert members["stacks/parent.npy"].tolist() == [-1, 0]


def test_a_column_of_small_steps_takes_a_byte_an_event():
    from mtprof_nb.model.file.packed_columns import pack_column

    column = schema_of(Trace).columns["start_ns"]
    text, first = pack_column(column, np.arange(1_700_000_000_000_000_000, 1_700_000_000_000_001_000, 10))

    assert (len(text), first) == (128 + 100, 1_700_000_000_000_000_000)


def test_a_recording_of_equal_events_loads_though_it_compresses_to_nothing(tmp_path):
    count = 1_000_000
    columns = with_defaults(Trace, count, name=np.zeros(count), device=np.zeros(count), track=np.zeros(count))
    trace = Trace(**columns, names=("a",), devices=("CPU",), tracks=(Track(1),))

    assert len(saved(trace, tmp_path)) == count
    assert (tmp_path / "run.mtp").stat().st_size > 100_000


def test_a_loaded_recording_answers_as_the_profile_did(tmp_path):
    trace = training_run(3_000)
    loaded = Recording(saved(trace, tmp_path))
    before = Recording(trace)

    assert loaded.key_averages().table() == before.key_averages().table()
    assert loaded.lines().table() == before.lines().table()
    assert loaded.summary() == before.summary()
    assert [dict(one) for one in loaded.events()[:50]] == [dict(one) for one in before.events()[:50]]
    assert _exported(loaded, tmp_path) == _exported(before, tmp_path)


def _exported(recording: Recording, folder: Path) -> bytes:
    recording.export_chrome_trace(folder / "trace.json")
    return (folder / "trace.json").read_bytes()


def test_a_loaded_recording_shows_its_text_in_a_terminal(tmp_path, capsys):
    trace = training_run(3_000)
    Recording(saved(trace, tmp_path)).show()
    loaded = capsys.readouterr().out
    Recording(trace).show()

    assert loaded == capsys.readouterr().out
    assert "aten::addmm" in loaded


def test_a_loaded_recording_introduces_itself(tmp_path):
    assert repr(Recording(saved(full_trace(), tmp_path))) == "<Recording 'Cell [3]': 3 events>"
    both = replace(full_trace(), processes=(Process(1, 0), Process(2, 1)))
    assert repr(Recording(both)) == "<Recording 'Cell [3]': 3 events, 2 processes>"


@pytest.mark.parametrize("name", ["run.json", "run.json.gz", "run.mtp.gz"])
def test_a_name_of_a_chrome_trace_is_refused(name: str, tmp_path: Path):
    with pytest.raises(ValueError, match=r"saved as \.mtp: save .* under another name, or call export_chrome_trace"):
        Recording(full_trace()).save(tmp_path / name)

    assert list(tmp_path.iterdir()) == []


def test_the_hand_made_traces_keep_the_promises_of_their_schema():
    for trace in (full_trace(), training_run(3_000), empty_trace(), make_trace([])):
        assert problem_of(trace) == ""


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "a name": ({"name": [0, 1, 3]}, "column 'name', row 2: 3 is not between 0 and 2"),
    "no name": ({"name": [0, -1, 1]}, "column 'name', row 1: -1 is not between 0 and 2"),
    "a kind": ({"kind": [0, 0, 10]}, "column 'kind', row 2: 10 is not between 0 and 9"),
    "a phase": ({"phase": [0, 0, -1]}, "column 'phase', row 2: -1 is not between 0 and 4"),
    "a shape": ({"shape": [0, -2, -1]}, "column 'shape', row 1: -2 is not between -1 and 0"),
    "an event": ({"forward": [3, 0, 0]}, "column 'forward', row 0: 3 is not between -1 and 2"),
    "a length": ({"duration_ns": [-1, 0, 0]}, "column 'duration_ns', row 0: -1 is not between 0"),
    "an order": ({"start_ns": [2, 1, 3]}, "events are not ordered by start"),
    "an end": ({"start_ns": [1, 1 << 61, 1 << 61], "duration_ns": [1, 1 << 61, 5]}, "event 1 ends later"),
    "a process": ({"tracks": (Track(1), Track(2, process=1), Track(3))}, "tracks, entry 1: 1 is not a position"),
    "no process": ({"processes": ()}, "tracks, entry 0: 0 is not a position in processes"),
    "element types": ({"dtypes": (("float",), ("int",))}, "dtypes has 2 entries, and shapes beside it 1"),
    "no stacks": ({"stacks": None}, "column 'stack', row 0: 1 is not between -1 and -1"),
}


@pytest.mark.parametrize("change", BROKEN)
def test_a_broken_promise_is_found_with_its_row(change: str):
    fields, expected = BROKEN[change]

    assert problem_of(replace(full_trace(), **fields)).startswith(expected)


def test_a_stack_that_is_its_own_ancestor_is_found():
    trace = full_trace()
    tree = replace(trace.stacks, parent=[1, 0])
    assert problem_of(replace(trace, stacks=tree)) == "stacks: column 'parent', row 0: 1 is not an earlier row"
    tree = replace(trace.stacks, parent=[-2, 0])
    assert problem_of(replace(trace, stacks=tree)) == "stacks: column 'parent', row 0: -2 is not between -1 and 1"
    tree = replace(trace.stacks, frames=(Frame("a.py", 1, "f"),))
    assert problem_of(replace(trace, stacks=tree)) == "stacks: column 'frame', row 1: 1 is not between 0 and 0"


def test_an_allocation_out_of_place_is_found():
    trace = full_trace()
    records = trace.allocations
    assert "allocations: column 'event'" in problem_of(replace(trace, allocations=replace(records, event=[3])))
    assert "allocations: column 'track'" in problem_of(replace(trace, allocations=replace(records, track=[9])))
    assert problem_of(replace(trace, allocations=replace(records, event=[-1], track=[-1]))) == ""
