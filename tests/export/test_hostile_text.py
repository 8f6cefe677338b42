"""Names are other people's text: every export of any text reads back as the same text."""

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from traces import differences, event, make_trace

from mtprof_nb import load
from mtprof_nb.export import chrome_trace
from mtprof_nb.export import collapsed_stacks as stacks
from mtprof_nb.model.trace import Trace, Track
from mtprof_nb.recording import Recording
from mtprof_nb.tables.averages import key_averages

HOSTILE = [
    "</script><script>alert(1)</script>",
    '"quoted" \\ back\\slash',
    "\x00\x01\x1f\x7f\x80",
    "\ud800 lone \udfff",
    "\u202eright to left\u2066",
    "\u2028\u2029\x85",
    "line\nbreak\r\ttab",
    "",
    " ",
    "a;b;c 123",
    "\U0001f600" * 3,
    "%s %d {name} {0}",
]
#: Every character there is, lone surrogates too.
TEXT = st.one_of(st.text(st.characters(exclude_categories=()), max_size=30), st.sampled_from(HOSTILE))
TIMES = st.integers(1_794_790_000_000_000_000, 1_794_790_010_000_000_000)


def _read(trace: Trace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        chrome_trace.write(trace, path)
        document: dict[str, Any] = json.loads(path.read_bytes().decode("utf-8"))
    return document


@given(st.lists(st.tuples(TEXT, TIMES, st.integers(0, 10**12), st.sampled_from(["op", "scope"])), max_size=20))
@example([(text, 1_794_790_000_000_000_000, 10, "op") for text in HOSTILE])
def test_a_chrome_trace_reads_back_as_the_same_names_times_and_counts(
    rows: list[tuple[str, int, int, str]],
) -> None:
    trace = make_trace([event(name, start, start + length, kind=kind) for name, start, length, kind in rows])
    document = _read(trace)

    base = document["baseTimeNanoseconds"]
    category = {"cpu_op": "op", "user_annotation": "scope"}
    events = [one for one in document["traceEvents"] if one.get("cat") in category]
    ends = {one["id"]: round(one["ts"] * 1000) for one in events if one["ph"] == "e"}
    read = []
    for one in events:
        start = round(one["ts"] * 1000)
        if one["ph"] == "X":
            read.append((one["name"], start + base, round(one["dur"] * 1000), category[one["cat"]]))
        elif one["ph"] == "b":
            read.append((one["name"], start + base, ends[one["id"]] - start, category[one["cat"]]))
    assert sorted(read) == sorted(rows)


@given(TEXT, TEXT, TEXT, TEXT, TEXT)
def test_every_other_text_of_a_chrome_trace_reads_back_too(
    file: str, function: str, module: str, thread: str, key: str
) -> None:
    rows = [event("a", 1, 2, stack=((file, 3, function),), module=module, dtypes=(key,), shapes=((1,),))]
    trace = make_trace(rows, metadata={f"m{key}": json.dumps(file)}, label=function, trace_id=module)
    object.__setattr__(trace, "tracks", (Track(1, thread),))
    document = _read(trace)

    args = document["traceEvents"][0]["args"]
    assert args["Call stack"] == f"{file}:3:{function}"
    assert args["stack"] == [f"{file}:3:{function}"]
    assert args["Module Hierarchy"] == module
    assert args["Input type"] == [key]
    assert document[f"m{key}"] == file
    assert document["trace_id"] == module
    named = [one["args"]["name"] for one in document["traceEvents"] if one["name"] == "thread_name"]
    assert set(named) == {thread or "thread 1"}


@given(st.lists(TEXT, min_size=8, max_size=8))
@example(HOSTILE[:8])
@example(HOSTILE[4:])
def test_every_text_of_a_saved_recording_comes_back(texts: list[str]) -> None:
    name, file, function, module, key, text, label, source = texts
    rows = [event(name, 1, 2, stack=((file, 3, function),), module=module, line=(file, 3), shapes=(), dtypes=(key,))]
    trace = replace(make_trace(rows, metadata={key: text}, host=text, label=label), sources={file: source})
    with tempfile.TemporaryDirectory() as folder:
        Recording(trace).save(Path(folder) / "run.mtp")
        loaded = load(Path(folder) / "run.mtp").trace

    assert differences(loaded, trace) == []


@given(TEXT, TEXT)
def test_metadata_of_any_key_and_text_leaves_valid_json(key: str, text: str) -> None:
    document = _read(make_trace([event("a", 1, 2)], metadata={key: text}))

    assert [one["name"] for one in document["traceEvents"] if one.get("cat") == "cpu_op"] == ["a"]


@given(st.lists(st.tuples(TEXT, TEXT, st.integers(1, 10**6)), min_size=1, max_size=10))
@example([(text, text, 5) for text in HOSTILE])
def test_each_collapsed_stack_is_one_line_with_its_own_number(rows: list[tuple[str, str, int]]) -> None:
    moments, events = 0, []
    for file, function, microseconds in rows:
        stack = ((file, 2, function), ("main.py", 1, "<module>"))
        events.append(event("op", moments, moments + microseconds * 1000, stack=stack))
        moments += microseconds * 1000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stacks.txt"
        stacks.write(make_trace(events), path)
        lines = path.read_bytes().decode("utf-8").splitlines()

    assert sum(int(line.rpartition(" ")[2]) for line in lines) == sum(row[2] for row in rows)
    assert {len(line.rpartition(" ")[0].split(";")) for line in lines} == {2}
    assert len(lines) == len({(file, function) for file, function, _ in rows})
    assert all(line.startswith("main.py:1:<module>;") and line.count(" ") == 1 for line in lines)


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=10, unique_by=lambda pair: pair[0]))
@example([(text, text) for text in HOSTILE])
def test_rows_of_averages_read_back_as_the_same_names(pairs: list[tuple[str, str]]) -> None:
    rows = [event(f"op {name}", number * 9_000, number * 9_000 + 5_000) for number, (name, _) in enumerate(pairs)]
    stacked = [{**row, "stack": ((file, 1, file),)} for row, (_, file) in zip(rows, pairs, strict=True)]
    averages = key_averages(make_trace(stacked), group_by_stack_n=5)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows"
        averages.export_chrome_trace(path)
        events = json.loads(path.read_bytes().decode("utf-8"))["traceEvents"]
        averages.export_stacks(path, "self_cpu_time_total")
        lines = path.read_bytes().decode("utf-8").splitlines()

    assert sorted(one["name"] for one in events) == sorted(row["name"] for row in rows)
    assert [line.rpartition(" ")[2] for line in lines] == ["5"] * len(pairs)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_name_of_megabytes_reads_back(text: str) -> None:
    name = (text or "x") * (2_000_000 // max(1, len(text)))
    document = _read(make_trace([event(name, 1, 2)]))

    assert document["traceEvents"][0]["name"] == name
