"""The Chrome trace of hand-made recordings, event by event."""

import gzip
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chrome_documents import events_of, written
from traces import event, make_trace

from mtprof_nb.export import chrome_events, chrome_trace
from mtprof_nb.model.trace import empty_trace
from mtprof_nb.tables.events import Events

#: Some day, to the nanosecond; Kineto counts from the start of a three-month interval.
NOON = 1_794_790_055_432_501_123
BASE = NOON // (7_889_238 * 10**9) * (7_889_238 * 10**9)


@pytest.fixture
def document(tmp_path: Path) -> dict[str, Any]:
    """An op inside of a scope, with everything recorded."""
    stack = (("model.py", 7, "forward"), ("train.py", 3, "<module>"))
    rows = [
        event("step", NOON, NOON + 900_000, kind="scope", stack=stack[1:]),
        event(
            "aten::mm",
            NOON + 1_007,
            NOON + 801_010,
            step=2,
            sequence_nr=5,
            shapes=((2, 3), ((3,), (4,)), ()),
            dtypes=("float", "TensorList", ""),
            stack=stack,
            memory=(100, 80),
            flops=36,
            module="net.fc1",
            line=("train.py", 3),
            overload="out",
        ),
    ]
    allocations = [{"time_ns": NOON + 5_000, "nbytes": 64, "address": 4096, "event": 1, "total": 164}]
    allocations += [{"time_ns": NOON + 6_000, "nbytes": -64, "address": 4096, "event": 1, "total": 100}]
    trace = make_trace(rows, allocations, pid=77, trace_id="abc", label="Cell [3]", metadata={"k": '{"a":1}'})
    return written(trace, tmp_path / "trace.json")


def test_an_op_is_an_x_event_with_the_members_of_kineto_and_of_the_contract(document: dict[str, Any]) -> None:
    assert events_of(document, ph="X", cat="cpu_op") == [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": "aten::mm",
            "pid": 77,
            "tid": 1,
            "ts": (NOON + 1_007 - BASE) / 1000,
            "dur": 800.003,
            "args": {
                "Ev Idx": 1,
                "External id": 1,
                "correlation_id": 1,
                "runtime_name": "dispatch_kernel",
                "runtime_tid": 1,
                "Record function id": 0,
                "Sequence number": 5,
                "Fwd thread id": 0,
                "Input Dims": [[2, 3], [[3], [4]], []],
                "input_shapes": [[2, 3], [[3], [4]], []],
                "Input type": ["float", "TensorList", ""],
                "Module Hierarchy": "net.fc1",
                "cpu_memory_allocated_before": 100,
                "cpu_memory_allocated_after": 80,
                "cpu_memory_allocated_delta": -20,
                "Call stack": "model.py:7:forward;train.py:3:<module>",
                "stack": ["model.py:7:forward", "train.py:3:<module>"],
            },
        }
    ]


def test_a_scope_is_a_user_annotation_without_the_facts_of_ops(document: dict[str, Any]) -> None:
    (scope,) = events_of(document, cat="user_annotation")

    assert (scope["name"], scope["dur"]) == ("step", 900.0)
    assert scope["args"] == {
        "Ev Idx": 0,
        "External id": 2,
        "Record function id": 0,
        "Call stack": "train.py:3:<module>",
        "stack": ["train.py:3:<module>"],
    }


def test_an_op_without_inputs_has_an_empty_list_of_shapes_as_in_events(tmp_path: Path) -> None:
    trace = make_trace(
        [
            event("aten::rand", 0, 1, shapes=()),
            event("aten::mm", 2, 3, shapes=((2, 3),)),
            event("on a thread without shapes", 4, 5),
            event("scope", 6, 7, kind="scope"),
        ]
    )
    args = {
        one["name"]: one["args"]
        for one in events_of(written(trace, tmp_path / "trace.json"), ph="X")
        if one["cat"] != "Trace"
    }

    assert {one.name: args[one.name]["input_shapes"] for one in Events(trace) if one.kind == "op"} == {
        one.name: one.input_shapes for one in Events(trace) if one.kind == "op"
    }
    assert [name for name, one in args.items() if "Input Dims" in one] == ["aten::mm"], "as Kineto's own file"
    assert "input_shapes" not in args["scope"]


def test_shapes_are_written_where_element_types_are_not_known(tmp_path: Path) -> None:
    trace = replace(make_trace([event("aten::mm", 1, 2, shapes=((2, 3),))]), dtypes=())
    (op,) = events_of(written(trace, tmp_path / "trace.json"), cat="cpu_op")

    assert (op["args"]["Input Dims"], op["args"]["Input type"]) == ([[2, 3]], [])


def test_no_other_event_repeats_an_op(document: dict[str, Any]) -> None:
    assert Counter(one["cat"] for one in events_of(document, ph="X")) == {"cpu_op": 1, "user_annotation": 1, "Trace": 1}


def test_allocations_and_releases_are_instants(document: dict[str, Any]) -> None:
    first, second = events_of(document, name="[memory]")

    assert first == {
        "ph": "i",
        "cat": "cpu_instant_event",
        "s": "t",
        "name": "[memory]",
        "pid": 77,
        "tid": 1,
        "ts": (NOON + 5_000 - BASE) / 1000,
        "args": {
            "Device Type": 0,
            "Device Id": -1,
            "Addr": 4096,
            "Bytes": 64,
            "Total Allocated": 164,
            "Total Reserved": 0,
            "finished": False,
            "Ev Idx": 2,
        },
    }
    assert (second["args"]["Bytes"], second["args"]["Total Allocated"]) == (-64, 100)


def test_an_allocation_of_an_unknown_thread_is_shown_by_the_process(tmp_path: Path) -> None:
    trace = make_trace([event("a", 0, 1)], [{"time_ns": 5_000, "nbytes": 8}], pid=9)
    assert trace.allocations is not None
    elsewhere = replace(trace, allocations=replace(trace.allocations, track=np.array([-1])))
    (memory,) = events_of(written(elsewhere, tmp_path / "trace.json"), name="[memory]")

    assert (memory["pid"], memory["tid"], memory["ts"]) == (9, 0, 5.0)


def test_the_file_tells_what_was_recorded_and_from_when_it_counts(document: dict[str, Any]) -> None:
    head = {key: value for key, value in document.items() if key not in ("traceEvents", "traceName")}

    assert head == {
        "schemaVersion": 1,
        "deviceProperties": [],
        "trace_id": "abc",
        "record_shapes": 1,
        "profile_memory": 1,
        "with_stack": 1,
        "with_flops": 1,
        "with_modules": 1,
        "k": {"a": 1},
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": BASE,
    }
    assert document["traceName"].endswith("trace.json")


def test_the_first_event_is_an_x_event(document: dict[str, Any]) -> None:
    assert document["traceEvents"][0]["ph"] == "X"


def test_processes_and_threads_are_named_and_sorted(document: dict[str, Any]) -> None:
    named = {(one["name"], one["pid"], one["tid"]): one["args"] for one in events_of(document, ph="M")}

    assert named["process_name", 77, 0] == {"name": "python"}
    assert named["process_labels", 77, 0] == {"labels": "CPU"}
    assert named["process_sort_index", 77, 0] == {"sort_index": 77}
    assert named["thread_name", 77, 1] == {"name": "thread 1"}
    assert named["thread_sort_index", 77, 1] == {"sort_index": 1}
    assert named["k", 77, 0] == {"value": {"a": 1}}


def test_the_window_of_the_recording_is_a_span(document: dict[str, Any]) -> None:
    (span,) = events_of(document, cat="Trace")

    assert (span["ts"], span["dur"]) == ((NOON - BASE) / 1000, 900.0)
    assert span["args"] == {"Op count": 2}


def test_what_was_not_recorded_is_not_in_the_file(tmp_path: Path) -> None:
    document = written(make_trace([event("aten::add", 1_000, 2_000)]), tmp_path / "trace.json")

    (op,) = events_of(document, cat="cpu_op")
    assert op["args"] == {
        "Ev Idx": 0,
        "External id": 1,
        "correlation_id": 1,
        "runtime_name": "dispatch_kernel",
        "runtime_tid": 1,
        "Record function id": 0,
    }
    assert events_of(document, name="[memory]") == []
    assert events_of(document, cat="fwdbwd") == []
    assert "with_stack" not in document


def test_an_empty_recording_is_a_valid_file(tmp_path: Path) -> None:
    document = written(empty_trace(began_ns=NOON, ended_ns=NOON + 5_000), tmp_path / "trace.json")

    assert events_of(document, cat="cpu_op") == []
    assert events_of(document, cat="Trace")[0]["dur"] == 5.0


def test_more_events_than_fit_in_a_chunk_are_all_there_in_order(tmp_path: Path) -> None:
    count = chrome_events._CHUNK_ROWS * 2 + 3
    rows = [event(f"op{number % 3}", NOON + number * 1_000, NOON + number * 1_000 + 999) for number in range(count)]
    trace = make_trace(rows)
    ops = events_of(written(trace, tmp_path / "trace.json"), cat="cpu_op")

    assert [op["args"]["Ev Idx"] for op in ops] == list(range(count))
    assert [op["args"]["correlation_id"] for op in ops] == trace.correlation_id.tolist()
    assert [round(op["ts"] * 1000) + BASE for op in ops] == trace.start_ns.tolist()
    assert {op["dur"] for op in ops} == {0.999}


@pytest.mark.parametrize("nanosecond", [0, 1, 999, 1_000, 9_999_999, 10_000_000, 10**13 - 1, 2**62])
def test_every_length_keeps_its_nanoseconds(tmp_path: Path, nanosecond: int) -> None:
    rows = [event("a", NOON, NOON + nanosecond), event("b", NOON + 1, NOON + 2)]
    chrome_trace.write(make_trace(rows), tmp_path / "trace.json")
    text = (tmp_path / "trace.json").read_text().replace(" ", "")

    assert f'"dur":{nanosecond // 1000}.{nanosecond % 1000:03d},' in text


def test_a_huge_trace_of_huge_names_is_made_in_small_pieces(tmp_path: Path) -> None:
    trace = make_trace([event("x" * 1_000_000, number * 10, number * 10 + 5) for number in range(100)])
    base = chrome_trace.base_ns(trace)
    lines = chrome_events.EventLines(trace, chrome_trace.ChromeTracks(trace), base)

    assert max(map(len, lines.events())) < 2 * chrome_events._CHUNK_BYTES


def test_dropped_events_are_told(tmp_path: Path) -> None:
    assert written(make_trace([event("a", 1, 2)], dropped=9), tmp_path / "t.json")["dropped_events"] == 9


def test_a_path_that_ends_in_gz_is_compressed(tmp_path: Path) -> None:
    trace = make_trace([event("aten::mm", 1_000, 2_000)])
    chrome_trace.write(trace, str(tmp_path / "trace.json.gz"))

    document = json.loads(gzip.decompress((tmp_path / "trace.json.gz").read_bytes()))
    assert Counter(one["name"] for one in document["traceEvents"])["aten::mm"] == 1


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ('{"a": [1, 2.5, null]}', {"a": [1, 2.5, None]}),
        ('"a string"', "a string"),
        ('"é \U0001f600"', "é \U0001f600"),
        ("not json", "not json"),
        ("", ""),
        ("{", "{"),
        ("NaN", "NaN"),
        ("[Infinity]", "[Infinity]"),
        ('"\ud800"', "\ud800"),
        ("\ud800", "\ud800"),
        ('"tab\there"', '"tab\there"'),
        ("[" * 100_000, "[" * 100_000),
        ("</script><b>", "</script><b>"),
    ],
)
def test_metadata_is_json_if_it_is_json_and_else_a_string(tmp_path: Path, text: str, meaning: object) -> None:
    document = written(make_trace([event("a", 1, 2)], metadata={"key": text}), tmp_path / "trace.json")

    assert document["key"] == meaning


@pytest.mark.parametrize("key", ["traceEvents", "baseTimeNanoseconds", "schemaVersion", "process_name", "thread_name"])
def test_metadata_cannot_take_the_place_of_the_trace_itself(tmp_path: Path, key: str) -> None:
    trace = make_trace([event("a", NOON, NOON + 1)], pid=5, metadata={key: '"mine"'})
    document = written(trace, tmp_path / "trace.json")

    assert document["baseTimeNanoseconds"] == BASE
    assert document["schemaVersion"] == 1
    (op,) = events_of(document, cat="cpu_op")
    assert op["name"] == "a"
    kept = [document.get(key)] + [one["args"].get("value") for one in events_of(document, ph="M", name=key)]
    assert "mine" in kept
    assert [one["args"] for one in events_of(document, name="process_name", pid=5)] == [{"name": "python"}]
