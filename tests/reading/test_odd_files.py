"""Files that are valid JSON, or valid archives, and yet unlike what profilers write."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import mtprof_nb as mtp
from mtprof_nb.errors import LoadError
from mtprof_nb.reading import read
from tests.reading.chrome_files import facts, span, written


def _again(folder: Path) -> mtp.Trace:
    path = folder / "saved.mtp"
    mtp.load(folder / "trace.json").save(path)
    return mtp.load(path).trace


@pytest.mark.parametrize(
    ("dims", "shapes"),
    [
        ([[2, 3], []], ((2, 3), ())),
        ([[-1, 2**70]], ((),)),
        ([[2, "x"], [[4], [5, None]]], ((), ((4,), ()))),
        ([[[[1]]], 7, None], (((),), (), ())),
        ({"a": 1}, ()),
    ],
)
def test_shapes_of_any_form_can_be_saved(tmp_path: Path, dims: Any, shapes: Any) -> None:
    trace = read(written(tmp_path, [span("aten::mm", 1, 5, Input_Dims=dims)]))

    assert trace.shapes[trace.shape[0]] == shapes
    assert _again(tmp_path).shapes == trace.shapes


def _allocation(ts: float, **args: Any) -> dict[str, Any]:
    members = {key.replace("_", " "): value for key, value in args.items()}
    return span("[memory]", ts, 0, "cpu_instant_event") | {"ph": "i", "args": members}


def test_allocations_without_a_size_are_told(tmp_path: Path) -> None:
    events = [
        span("aten::empty", 1, 50),
        _allocation(2, Bytes=1, Addr=64, Device_Type=0, Device_Id=-1, Total_Allocated=1),
        _allocation(3, Bytes=2**80, Addr=65, Device_Type=0, Device_Id=-1, Total_Allocated=5),
        _allocation(4, Bytes="many", Addr=66, Device_Type=0, Device_Id=-1, Total_Allocated=5),
        _allocation(5),
        _allocation(6, Bytes=-1, Addr=64, Device_Type=0, Device_Id=-1, Total_Allocated=0),
    ]

    trace = read(written(tmp_path, events))

    assert trace.allocations is not None
    assert trace.allocations.nbytes.tolist() == [1, -1]
    assert trace.devices == ("CPU",)
    assert trace.notes == ("Allocations without a valid size, left out: 3.",)


def test_an_allocation_alone_without_members_is_told(tmp_path: Path) -> None:
    trace = read(written(tmp_path, [span("aten::empty", 1, 50), _allocation(5)]))

    assert trace.notes == ("Allocations without a valid size, left out: 1.",)


def test_hundreds_of_processes_in_one_file_stay_apart(tmp_path: Path) -> None:
    trace = read(written(tmp_path, [span("aten::mm", 1, 5, pid=1000 + rank) for rank in range(300)]))

    assert [process.pid for process in trace.processes] == list(range(1000, 1300))
    assert trace.notes == ()


def test_processes_beyond_all_measure_are_told(tmp_path: Path) -> None:
    trace = read(written(tmp_path, [span("aten::mm", 1, 5, pid=1000 + rank) for rank in range(1030)]))

    assert len(trace.processes) == 1024
    assert trace.notes == ("Processes that are taken for one, for there are too many: 6.",)


TEXT = json.dumps({"traceEvents": [span("aten::mm", 1, 5), span("aten::mm", 9, 5)]}).encode()


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(TEXT[:40]) + gzip.compress(TEXT[40:]),
        gzip.compress(TEXT) + bytes(5_000),
        TEXT.replace(b", ", b",\r\n"),
        TEXT.replace(b", ", b",\r"),
    ],
    ids=["members", "zeros", "crlf", "cr"],
)
def test_members_of_gzip_and_ends_of_lines_may_be_any(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(content)

    assert facts(read(path), "start_ns") == [("aten::mm", 1_000), ("aten::mm", 9_000)]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (gzip.compress(gzip.compress(TEXT)), "it is compressed twice with gzip. Decompress it with `gzip -d`"),
        (b"\x28\xb5\x2f\xfd" + bytes(40), "it is compressed with Zstandard. Decompress it with `zstd -d`"),
    ],
    ids=["twice", "zstd"],
)
def test_a_file_that_has_to_be_decompressed_says_how(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(content)

    with pytest.raises(LoadError, match=says):
        read(path)


def test_of_a_member_that_stands_twice_the_last_counts(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text('{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","name":"b","ts":1,"ts":5,"dur":2}]}')

    assert facts(read(path), "start_ns", "duration_ns") == [("b", 5_000, 2_000)]


def test_names_that_are_no_text_are_shown_and_can_be_saved(tmp_path: Path) -> None:
    names = [None, 5, {"a": 1}, "a\ud800b"]
    trace = read(written(tmp_path, [span(name, at, 1) for at, name in enumerate(names)]))  # type: ignore[arg-type]

    assert [name for (name,) in facts(trace)] == ["", "5", "{'a': 1}", "a?b"]
    assert _again(tmp_path).names == trace.names
