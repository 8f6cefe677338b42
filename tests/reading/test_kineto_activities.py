"""Every type of activity that Kineto writes has a kind, or is counted in a note."""

import json
from pathlib import Path
from typing import Any

import pytest

import mtprof_nb as mtp
from mtprof_nb.reading import read
from tests.reading.chrome_files import HOST, facts, named, span, written

_OF_HOST = (HOST, 1)
_OF_DEVICE = (0, 7)
_OF_NOBODY = (-1, 1)


@pytest.mark.parametrize(
    ("category", "lane", "kind"),
    [
        ("cpu_op", _OF_HOST, "op"),
        ("user_annotation", _OF_HOST, "scope"),
        ("gpu_user_annotation", _OF_DEVICE, "device_scope"),
        ("gpu_memcpy", _OF_DEVICE, "copy"),
        ("gpu_memset", _OF_DEVICE, "set"),
        ("kernel", _OF_DEVICE, "kernel"),
        ("cuda_runtime", _OF_HOST, "runtime"),
        ("cuda_driver", _OF_HOST, "runtime"),
        ("python_function", _OF_HOST, "python"),
        ("overhead", _OF_NOBODY, "runtime"),
        ("mtia_runtime", _OF_HOST, "runtime"),
        ("mtia_ccp_events", _OF_DEVICE, "kernel"),
        ("mtia_insight", _OF_DEVICE, "device_scope"),
        ("cuda_sync", _OF_DEVICE, "sync"),
        ("cuda_event", _OF_DEVICE, "sync"),
        ("glow_runtime", _OF_HOST, "runtime"),
        ("cuda_profiler_range", _OF_DEVICE, "device_scope"),
        ("hpu_op", _OF_HOST, "runtime"),
        ("hpu_op", _OF_DEVICE, "kernel"),
        ("xpu_runtime", _OF_HOST, "runtime"),
        ("xpu_driver", _OF_HOST, "runtime"),
        ("xpu_sync", _OF_NOBODY, "runtime"),
        ("collective_comm", _OF_HOST, "scope"),
        ("privateuse1_runtime", _OF_HOST, "runtime"),
        ("privateuse1_driver", _OF_HOST, "runtime"),
    ],
)
def test_an_activity_of_each_type_has_its_kind(tmp_path: Path, category: str, lane: tuple[int, int], kind: str) -> None:
    pid, tid = lane
    events = [span("aten::mm", 1, 100, External_id=1), span("one", 10, 5, category, pid=pid, tid=tid, External_id=1)]

    trace = read(written(tmp_path, events))

    assert dict(facts(trace, "kind"))["one"] == kind
    assert trace.notes == ()


@pytest.mark.parametrize("category", ["mtia_counters", "hardware_counters", "xpu_scope_profiler"])
def test_samples_of_counters_are_told(tmp_path: Path, category: str) -> None:
    sample = {"ph": "C", "cat": category, "name": "l1", "pid": "GPU 0 Counters", "tid": 0, "ts": 5, "args": {"": 1.5}}

    trace = read(written(tmp_path, [span("aten::mm", 1, 100), sample]))

    assert facts(trace, "kind") == [("aten::mm", "op")]
    assert trace.notes == ("Samples of counters, left out: 1.",)


def test_waits_of_the_host_for_an_xpu_are_on_the_thread_that_waits(tmp_path: Path) -> None:
    # Kineto's plugin for XPUs writes the thread of a wait, and process -1; the overhead of recording likewise.
    events = [
        named("process_labels", "XPU 0", pid=0),
        span("aten::item", 10, 50, External_id=4),
        span("urEventWait", 20, 30, "xpu_runtime", External_id=4, correlation=9),
        span("zeEventHostSynchronize", 22, 20, "xpu_sync", pid=-1, External_id=4, correlation=10, Type="HOST_EVENT"),
        span("Buffer Flush", 44, 3, "overhead", pid=-1),
        span("urEnqueueKernelLaunch", 12, 3, "xpu_runtime", External_id=4, correlation=8),
        span("gemm", 16, 20, "kernel", pid=0, tid=3, External_id=4, correlation=8, device=0, sycl_queue=3),
    ]

    trace = read(written(tmp_path, events))

    assert facts(trace, "kind", "track", "device", "launch", "launcher") == [
        ("aten::item", "op", "thread 1", "CPU", -1, -1),
        ("urEnqueueKernelLaunch", "runtime", "thread 1", "CPU", -1, 0),
        ("gemm", "kernel", "stream 3", "XPU", 1, 0),
        ("urEventWait", "runtime", "thread 1", "CPU", -1, 0),
        ("zeEventHostSynchronize", "runtime", "thread 1", "CPU", -1, 0),
        ("Buffer Flush", "runtime", "profiler", "CPU", -1, -1),
    ]
    assert [process.pid for process in trace.processes] == [HOST]


def test_a_wait_on_a_thread_without_other_events_is_of_the_program(tmp_path: Path) -> None:
    events = [span("aten::mm", 1, 5), span("zeFenceHostSynchronize", 2, 3, "xpu_sync", pid=-1, tid=77)]

    trace = read(written(tmp_path, events))

    assert facts(trace, "kind", "track")[1] == ("zeFenceHostSynchronize", "runtime", "thread 77")


def _without_category(name: str, ts: Any) -> dict[str, Any]:
    return {key: value for key, value in span(name, ts, 1.25, step=3).items() if key != "cat"}


@pytest.mark.parametrize("first_us", [0, 1_700_000_000_000_000])
def test_a_long_file_without_any_category_is_read_in_parts(tmp_path: Path, first_us: int) -> None:
    count = 20_000
    text = json.dumps([_without_category("work", 0) for _ in range(count)])
    pieces = text.split('"ts": 0')
    path = tmp_path / "trace.json"
    path.write_text("".join(f'{piece}"ts": {first_us + n * 2}.125' for n, piece in enumerate(pieces[:-1])) + pieces[-1])

    trace = read(path)

    assert trace.start_ns.tolist() == [(first_us + n * 2) * 1000 + 125 for n in range(count)]
    assert set(trace.duration_ns.tolist()) == {1250}
    assert trace.notes == ()


def test_a_category_that_comes_late_is_seen(tmp_path: Path) -> None:
    events = [_without_category("work", n) for n in range(20_000)] + [span("gemm", 30_000, 5, "kernel", pid=0, tid=7)]

    trace = read(written(tmp_path, events))

    assert facts(trace, "kind")[-2:] == [("work", "op"), ("gemm", "kernel")]


def test_the_scope_of_a_collective_that_outlasts_its_op_is_asynchronous(tmp_path: Path) -> None:
    events = [
        span("evaluate", 0, 100),
        span("c10d::allreduce_", 60, 30),
        span("hccl:all_reduce", 70, 25, "user_annotation"),
        span("step", 0, 90, "user_annotation", tid=2),
        span("aten::mm", 80, 30, tid=2),
    ]

    path = written(tmp_path, events)

    assert {name for name, is_async in facts(read(path), "is_async") if is_async} == {"hccl:all_reduce"}
    own_us = {row.key: row.self_cpu_time_total for row in mtp.load(path).key_averages()}
    assert (own_us["evaluate"], own_us["c10d::allreduce_"]) == (70, 30)
