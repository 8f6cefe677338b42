"""Notes on what of a file is not shown as it stands there, and reading with either decoder."""

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chrome_files import HOST, facts, flow, named, span, written

from mtprof_nb.model.trace import Trace
from mtprof_nb.reading import read
from mtprof_nb.reading.text import text_source
from mtprof_nb.reading.text.event_records import Decoder
from mtprof_nb.reading.text.plain_json import PlainDecoder


def test_what_is_not_understood_is_counted(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = [
        span("aten::mm", 1, 5),
        span("mystery", 7, 5, "brand_new"),
        span("broken", 9, -5),
        span("timeless", "soon", 5),
        {"ph": "C", "name": "power", "pid": 1, "ts": 3, "args": {"W": 1}},
        {"ph": "i", "name": "flash", "pid": 1, "tid": 1, "ts": 3},
        {"ph": "Z", "name": "?", "pid": 1, "tid": 1, "ts": 3},
        span("odd", 20, 5) | {"args": [1, 2]},
        span("long", 30, 10**40),
        {"ph": "X", "cat": "cpu_op", "name": "open", "pid": 100, "tid": 1, "ts": 31},
    ]

    trace = read(written(tmp_path, events))

    assert facts(trace, "kind", "duration_ns") == [
        ("aten::mm", "op", 5_000),
        ("mystery", "scope", 5_000),
        ("broken", "op", 0),
        ("odd", "op", 5_000),
        ("long", "op", 0),
        ("open", "op", 0),
    ]
    assert trace.notes == (
        "Durations below zero, taken as 0: 1.",
        "Events of the unknown category 'brand_new', shown as scopes: 1.",
        "Events of the unknown phase 'Z', left out: 1.",
        "Events whose `args` are no object, read without them: 1.",
        "Events without a valid duration, taken as 0: 2.",
        "Events without a valid time, left out: 1.",
        "Instants, left out: 1.",
        "Samples of counters, left out: 1.",
    )


def test_both_decoders_read_the_same(tmp_path: Path) -> None:
    events = [
        span("aten::mm", 1661203462598738.123, 5, External_id=1, Input_Dims=[[2, 3]], Input_type=["float"]),
        span("gemm", 1661203462598739.5, 5, "kernel", pid=0, tid=7, External_id=1, grid=[1, 2, 3], stream=7, device=0),
        span("scope", 1661203462598730.5, 50, "user_annotation", own=1),
    ]
    path = written(tmp_path, events)

    fast, plain = read(path), read(path, decoder=PlainDecoder())

    columns = ("kind", "start_ns", "duration_ns", "track", "shape", "extra", "launcher", "values")
    assert facts(fast, *columns) == facts(plain, *columns)
    assert (fast.shapes, fast.dtypes, fast.value_texts) == (plain.shapes, plain.dtypes, plain.value_texts)
    assert [json.loads(one) for one in fast.extras] == [json.loads(one) for one in plain.extras]


def _changing_events() -> Iterator[dict[str, Any]]:
    """Events of several categories, whose members come, go, and change their types on the way."""
    for number in range(300):
        at = 1711964646598738 + number * 100
        inputs = {"Input_Dims": [[number % 3, 4], []], "Input_type": ["float", ""]} if number % 2 else {}
        yield span(f"aten::op{number % 7}", at, 90.25, External_id=number, Sequence_number=number % 5, **inputs)
        call = {"correlation": number, "cbid": 211, "External_id": number}
        yield span("cudaLaunchKernel", at + 10, 5, "cuda_runtime", **call | ({"extra": [1]} if number > 200 else {}))
        facts = {"correlation": number, "device": 0, "stream": 7, "grid": [number % 4, 1, 1], "warps": number / 8}
        facts |= {"odd": [None, 1, "1", [1], {"a": 1}, True, 1.5, ""][number // 20 % 8]} if number > 20 else {}
        yield span(f"gemm{number % 3}", at + 120, 30, "kernel", tid=7, pid=0, **facts)
        yield flow("s", number, at + 10, "ac2g")
        yield flow("f", number, at + 120, "ac2g", tid=7, pid=0)
        if number % 50 == 0:
            yield named("thread_name", f"thread {number} (worker)", tid=number)
            yield span(f"new{number}", at, 95, f"category {number}", note=f"n{number}")
            yield {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": HOST, "tid": 1, "ts": at + 20} | {
                "args": {"Addr": number, "Bytes": 64, "Device Type": 0, "Device Id": -1, "Total Allocated": number}
            }


@pytest.mark.parametrize("block", [3_000, 1 << 18])
def test_both_decoders_read_the_same_of_events_that_change(
    tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_source, "BLOCK", block)
    path = written(tmp_path, _changing_events())
    path.write_text(re.sub(r'("ts": \d{16})', r"\1.123", path.read_text()))

    fast, plain = read(path), read(path, decoder=PlainDecoder())

    columns = ("kind", "start_ns", "duration_ns", "track", "sequence_nr", "phase", "launch", "launcher", "forward")
    assert facts(fast, *columns) == facts(plain, *columns)
    assert fast.start_ns[0] == 1_711_964_646_598_738_123
    tables = (("shape", "shapes"), ("shape", "dtypes"), ("values", "value_texts"))
    for column, table in tables:
        assert _entries(fast, column, table) == _entries(plain, column, table)
    assert [_read_extra(one) for one in _entries(fast, "extra", "extras")] == [
        _read_extra(one) for one in _entries(plain, "extra", "extras")
    ]
    assert fast.notes == plain.notes
    assert fast.allocations is not None
    assert plain.allocations is not None
    assert fast.allocations.address.tolist() == plain.allocations.address.tolist() == list(range(0, 300, 50))


def _entries(trace: Trace, column: str, table: str) -> list[Any]:
    """The entry of a table that each event has."""
    entries = getattr(trace, table)
    return [None if position < 0 else entries[position] for position in getattr(trace, column).tolist()]


def _read_extra(text: str | None) -> Any:
    return None if text is None else {key: json.loads(value) for key, value in json.loads(text).items()}


@pytest.mark.parametrize("decoder", [None, PlainDecoder()])
def test_bytes_that_are_no_text_are_replaced_and_counted(tmp_path: Path, decoder: Decoder | None) -> None:
    ops = [
        span("aten::m\u00e4", 1, 5),
        span("bad-\u00e9", 9, 5),
        span("gemm", 20, 5, "kernel", pid=0, note="bad-\u00e9"),
    ]
    path = written(tmp_path, ops)
    text = json.dumps({"traceEvents": ops}, ensure_ascii=False).encode()
    path.write_bytes(text.replace("bad-\u00e9".encode(), b"bad-\xe9"))

    trace = read(path, decoder=decoder)

    assert [trace.names[name] for name in trace.name] == ["aten::m\u00e4", "bad-\ufffd", "gemm"]
    assert json.loads(json.loads(trace.extras[0])["note"]) == "bad-\ufffd"
    assert trace.notes == ("Bytes that are no UTF-8, replaced: 2.",)


def test_what_stands_behind_the_trace_is_told(tmp_path: Path) -> None:
    text = json.dumps({"traceEvents": [span("aten::mm", 1, 5)]})
    path = tmp_path / "trace.json"

    path.write_bytes(gzip.compress(text.encode()) + b"more than a header of gzip")
    (note,) = read(path).notes
    assert note.startswith("Behind the end of the trace, compressed byte ")
    path.write_text(text[:-1] + ', "traceEvents": [1]}')
    assert read(path).notes == ("The file has a second list `traceEvents`, left out.",)


def test_progress_is_told_from_the_beginning_to_the_end(tmp_path: Path) -> None:
    seen: list[float] = []
    path = written(tmp_path, [span(f"aten::mm{number}" * 30, number, 1) for number in range(5_000)])

    read(path, progress=seen.append)

    assert len(seen) > 2
    assert seen == sorted(seen)
    assert (seen[0] > 0, seen[-1]) == (True, 1.0)
