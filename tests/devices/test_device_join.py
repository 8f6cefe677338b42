"""The join of ops with what devices did, on columns made by hand: threads, times and numbers are exact."""

import json
from typing import Any

import numpy as np
import pytest

from mtprof_nb.capture.native.device_join import RecordedDevices, with_devices
from mtprof_nb.capture.native.kineto_rows import DeviceRows, joined, kind_of
from mtprof_nb.model.trace import COPY, DEVICE_SCOPE, KERNEL, OP, RUNTIME, SCOPE, SET, SYNC, Columns, Track

MAIN, OTHER = 0, 1
#: Native id, torch's number, low half of the library's number, and when it took part.
THREADS = [(100, 1, 0xAAAA0700, 0), (200, 2, 0xBBBB0700, 0)]
TRACKS = (Track(100, "main", number=1), Track(200, "other", number=2))


def ops(*rows: tuple[str, int, int, int], scopes: tuple[str, ...] = ("scope",), extras: Any = ()) -> Columns:
    """Columns of ops, each a name, a thread, a start and an end; those whose name is in `scopes` are scopes."""
    names = list(dict.fromkeys(name for name, *_ in rows))
    count = len(rows)
    column = {name: np.full(count, -1, np.int32) for name in ("form", "values", "stack", "addresses")}
    known = dict(extras)
    return {
        **column,
        "names": names,
        "name": np.array([names.index(name) for name, *_ in rows], np.int32),
        "thread": np.array([thread for _, thread, *_ in rows], np.int32),
        "start": np.array([start for *_, start, _ in rows], np.int64),
        "duration": np.array([end - start for *_, start, end in rows], np.int64),
        "kind": np.array([SCOPE if name in scopes else OP for name, *_ in rows], np.int8),
        "sequence_nr": np.full(count, -1, np.int64),
        "handle": np.empty(0, np.int64),
        "held_before": np.zeros(count, np.int64),
        "held_after": np.zeros(count, np.int64),
        **{name: np.zeros(count, np.int8) for name in ("scope", "flags", "device_type", "device_index")},
        "forward_thread": np.zeros(count, np.int32),
        "extra": np.array([[*known].index(name) if name in known else -1 for name, *_ in rows], np.int32),
        "extras": list(known.values()),
        "block_event": np.array([count - 1, -1], np.int32),
        "threads": THREADS,
    }


def rows(*given: tuple[Any, ...], facts: tuple[str, ...] = ()) -> DeviceRows:
    """Calls and events: name, kind, start, end, thread or stream, number, and index of the device and of its facts."""
    whole = [(*one, 0, -1)[:8] if len(one) < 8 else one for one in given]
    names = tuple(dict.fromkeys(name for name, *_ in whole))
    columns = [np.array(column) for column in list(zip(*whole, strict=True))[1:]]
    kind, start, end, resource, correlation, device, fact = columns
    return DeviceRows(
        start=start.astype(np.int64),
        duration=(end - start).astype(np.int64),
        kind=kind.astype(np.int8),
        name=np.array([names.index(name) for name, *_ in whole], np.int32),
        names=names,
        device=device.astype(np.int32),
        resource=resource.astype(np.int64),
        correlation=correlation.astype(np.int64),
        facts=fact.astype(np.int32),
        fact_texts=facts,
    )


def joined_names(columns: Columns, found: DeviceRows, python_threads: Any = None) -> list[tuple[Any, ...]]:
    """Of each call or event its name, that of its op, that of its call, and its track."""
    made, facts = with_devices(columns, RecordedDevices("CUDA", found, python_threads or {}), TRACKS)
    name = [made["names"][one] for one in made["name"].tolist()]
    named = [*name, None]
    return [
        (
            name[row],
            named[facts["launcher"][row]],
            named[facts["launch"][row]],
            facts["tracks"][made["thread"][row]].title,
        )
        for row in range(len(name))
        if made["kind"][row] not in (OP, SCOPE)
    ]


def test_a_kernel_belongs_to_the_innermost_op_at_the_middle_of_its_launch() -> None:
    columns = ops(("outer", MAIN, 0, 100), ("inner", MAIN, 40, 80), ("elsewhere", OTHER, 40, 80))
    # The launch begins before `inner` by the clock of the device, and ends inside.
    found = rows(("launch", RUNTIME, 38, 60, 100, 5), ("kernel", KERNEL, 200, 300, 7, 5))
    assert joined_names(columns, found) == [
        ("launch", "inner", None, "main"),
        ("kernel", "inner", "launch", "stream 7"),
    ]


@pytest.mark.parametrize("number", [200, 0xBBBB0700, 0xBBBB0700 - (1 << 32)])
def test_a_thread_is_known_by_either_of_its_numbers(number: int) -> None:
    columns = ops(("here", MAIN, 0, 100), ("there", OTHER, 0, 100))
    found = rows(("launch", RUNTIME, 10, 20, number, 5), ("kernel", KERNEL, 30, 40, 7, 5))
    assert joined_names(columns, found)[1][:2] == ("kernel", "there")


def test_a_number_that_is_used_again_means_the_thread_that_began_last_before() -> None:
    columns = ops(("early", MAIN, 0, 100), ("late", OTHER, 500, 600))
    columns["threads"] = [(100, 1, 0xAAAA0700, 0), (200, 2, 0xAAAA0700, 450)]
    found = rows(
        ("a", RUNTIME, 10, 20, 0xAAAA0700, 1),
        ("b", RUNTIME, 510, 520, 0xAAAA0700, 2),
        ("k", KERNEL, 30, 40, 7, 1),
        ("k", KERNEL, 530, 540, 7, 2),
    )
    assert [owner for name, owner, *_ in joined_names(columns, found) if name == "k"] == ["early", "late"]


def test_a_thread_without_ops_has_a_track_of_its_own() -> None:
    found = rows(("launch", RUNTIME, 10, 20, 0xCCCC0700, 5), ("kernel", KERNEL, 30, 40, 7, 5))
    columns = ops(("op", MAIN, 0, 100))
    assert joined_names(columns, found)[0] == ("launch", None, None, f"thread {0xCCCC0700}")
    assert joined_names(columns, found, {0xCCCC0700: 100})[0] == ("launch", "op", None, "main")


def test_all_kernels_of_a_graph_belong_to_its_launch_and_lost_ones_to_none() -> None:
    columns = ops(("op", MAIN, 0, 100))
    found = rows(
        ("a", KERNEL, 200, 210, 7, 5),
        ("b", KERNEL, 210, 220, 8, 5),
        ("lost", KERNEL, 220, 230, 7, 6),
        ("none", KERNEL, 230, 240, 7, 0),
        ("graph", RUNTIME, 10, 90, 100, 5),
    )
    assert [one[:3] for one in joined_names(columns, found)] == [
        ("graph", "op", None),
        ("a", "op", "graph"),
        ("b", "op", "graph"),
        ("lost", None, None),
        ("none", None, None),
    ]


def test_a_scope_spans_what_was_launched_directly_in_it_on_each_stream() -> None:
    columns = ops(("scope", MAIN, 0, 100), ("op", MAIN, 10, 20), ("op", MAIN, 30, 40))
    found = rows(
        ("launch", RUNTIME, 12, 14, 100, 1),
        ("launch", RUNTIME, 32, 34, 100, 2),
        ("launch", RUNTIME, 120, 134, 100, 3),
        ("k", KERNEL, 50, 60, 7, 1),
        ("k", KERNEL, 70, 90, 7, 2),
        ("k", KERNEL, 70, 75, 8, 2),
        ("k", KERNEL, 140, 145, 8, 3),
    )
    made, facts = with_devices(columns, RecordedDevices("CUDA", found, {}), TRACKS)
    at = np.flatnonzero(made["kind"] == DEVICE_SCOPE)
    times = zip(made["start"][at].tolist(), made["duration"][at].tolist(), strict=True)
    assert dict(zip((facts["tracks"][one].title for one in made["thread"][at]), times, strict=True)) == {
        "stream 7": (50, 40),
        "stream 8": (70, 5),
    }
    assert {made["names"][made["name"][facts["launcher"][row]]] for row in at} == {"scope"}


def test_kernels_of_a_collective_have_the_facts_of_the_op_around_their_launch() -> None:
    said = json.dumps({"Collective name": '"allreduce"'})
    columns = ops(("comms", MAIN, 0, 100), ("op", MAIN, 10, 90), extras={"comms": said})
    found = rows(
        ("launch", RUNTIME, 20, 30, 100, 1),
        ("ncclDevKernel_AllReduce", KERNEL, 40, 60, 20, 1, 0, 0),
        facts=('{"grid": "[8, 1, 1]"}',),
    )
    made, _ = with_devices(columns, RecordedDevices("CUDA", found, {}), TRACKS)
    (row,) = np.flatnonzero(made["kind"] == KERNEL)
    assert json.loads(made["extras"][made["extra"][row]]) == {"Collective name": '"allreduce"', "grid": "[8, 1, 1]"}


def test_rows_are_in_the_order_of_a_trace_and_references_follow() -> None:
    columns = ops(("first", MAIN, 0, 100), ("second", MAIN, 200, 300))
    found = rows(("kernel", KERNEL, 150, 160, 7, 1, 1, -1), ("launch", RUNTIME, 50, 60, 100, 1))
    made, facts = with_devices(columns, RecordedDevices("CUDA", found, {}), TRACKS)
    assert [made["names"][one] for one in made["name"]] == ["first", "launch", "kernel", "second"]
    assert facts["launcher"].tolist() == [-1, 0, 0, -1]
    assert facts["launch"].tolist() == [-1, -1, 1, -1]
    assert facts["device"].tolist() == [0, 0, 1, 0]
    assert facts["device_index"].tolist() == [0, 0, 1, 0]
    assert made["block_event"].tolist() == [3, -1]
    assert made["held_before"].tolist() == [0, -1, -1, 0]


def test_of_those_that_begin_at_one_moment_the_longest_comes_first() -> None:
    columns = ops(("long", MAIN, 50, 100), ("short", MAIN, 50, 60), ("last", MAIN, 50, 60))
    found = rows(
        ("b", KERNEL, 50, 70, 7, 0),
        ("early", KERNEL, 40, 41, 7, 0),
        ("a", KERNEL, 50, 200, 7, 0),
        ("d", KERNEL, 50, 55, 7, 0),
        ("c", KERNEL, 50, 60, 7, 0),
    )
    made, _ = with_devices(columns, RecordedDevices("CUDA", found, {}), TRACKS)
    expected = ["early", "a", "long", "b", "short", "last", "c", "d"]
    assert [made["names"][one] for one in made["name"]] == expected
    assert made["block_event"].tolist() == [5, -1]


def test_without_events_there_are_no_devices() -> None:
    nothing = rows(("kernel", KERNEL, 0, 1, 7, 1))
    empty = DeviceRows(**{name: value[:0] for name, value in vars(nothing).items()})
    made, facts = with_devices(ops(("op", MAIN, 0, 100)), RecordedDevices("CUDA", empty, {}), TRACKS)
    assert (facts["devices"], facts["launcher"].tolist(), len(made["start"])) == (("CPU",), [-1], 1)


def test_waiting_for_a_stream_has_a_track_beside_its_work_and_widens_no_scope() -> None:
    columns = ops(("scope", MAIN, 0, 200), ("op", MAIN, 0, 200))
    given = rows(
        *(("launch", RUNTIME, 10, 20, 100, 1), ("kernel", KERNEL, 30, 60, 7, 1)),
        *(("wait", RUNTIME, 40, 90, 100, 2), ("Stream Sync", SYNC, 40, 90, 7, 2)),
        *(("wait", RUNTIME, 100, 110, 100, 3), ("Event Sync", SYNC, 100, 110, -1, 3)),
    )
    made, facts = with_devices(columns, RecordedDevices("CUDA", given, {}), TRACKS)
    tracks = {(facts["tracks"][track].name, facts["tracks"][track].native_id) for track in made["thread"].tolist()}
    assert tracks == {("main", 100), ("stream 7", 7), ("stream 7, syncs", 7), ("stream -1, syncs", -1)}
    (scope,) = np.flatnonzero(made["kind"] == DEVICE_SCOPE)
    assert (made["start"][scope], made["duration"][scope]) == (30, 30)


def test_numbers_of_several_recordings_are_kept_apart() -> None:
    part = rows(("launch", RUNTIME, 10, 20, 100, 1), ("kernel", KERNEL, 30, 40, 7, 1))
    later = rows(("launch", RUNTIME, 110, 120, 100, 1), ("other", KERNEL, 130, 140, 7, 1))
    both = joined([part, later])
    columns = ops(("one", MAIN, 0, 100), ("two", MAIN, 100, 200))
    assert [one[:2] for one in joined_names(columns, both) if one[0] != "launch"] == [
        ("kernel", "one"),
        ("other", "two"),
    ]


@pytest.mark.parametrize(
    ("activity", "kind"),
    [
        *(("kernel", KERNEL), ("gpu_memcpy", COPY), ("gpu_memset", SET), ("cuda_runtime", RUNTIME)),
        *(("cuda_driver", RUNTIME), ("overhead", RUNTIME), ("cuda_sync", SYNC), ("xpu_runtime", RUNTIME)),
        *(("mtia_ccp_events", KERNEL), ("gpu_user_annotation", DEVICE_SCOPE), ("privateuse1_runtime", RUNTIME)),
    ],
)
def test_activities_of_kineto_have_the_kinds_that_hook_kineto_gives_them(activity: str, kind: int) -> None:
    assert kind_of(activity) == kind
