"""Two processes in one trace, with equal numbers, thread ids and addresses: nothing of one counts for the other."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from traces import event, make_trace

from mtprof_nb.analysis.costs import averaged_costs, loose_allocations
from mtprof_nb.analysis.groups import group
from mtprof_nb.analysis.lanes import lanes
from mtprof_nb.analysis.memory.memory_categories import Category, categories
from mtprof_nb.analysis.memory.memory_curve import largest_kinds, memory_curve, memory_devices, peak
from mtprof_nb.analysis.summary import outside_ops_ns, summary
from mtprof_nb.export import chrome_trace, memory_timeline
from mtprof_nb.model.merge import merge
from mtprof_nb.model.trace import Process, Recorded, Trace
from mtprof_nb.views.tabs.memory.memory_tab import largest_allocations


def of_rank(rank: int, trace: Trace, **metadata: str) -> Trace:
    """`trace` as recorded by process 7 of a host of its own."""
    process = Process(7, rank, host=f"host{rank}", metadata=tuple(metadata.items()))
    return replace(trace, processes=(process,), windows=((trace.began_ns, trace.ended_ns),))


def allocation(time_ns: int, nbytes: int, **facts: Any) -> dict[str, Any]:
    return {"time_ns": time_ns, "nbytes": nbytes, "address": 64, **facts}


@pytest.fixture
def both() -> Trace:
    """`mm` of rank 0 runs around `add` of rank 1; a block of rank 1 is released while rank 0 alone is in an op."""
    mm = make_trace([event("mm", 0, 100)], [allocation(50, 10, event=0), allocation(90, -10, event=0)])
    add = make_trace([event("add", 10, 60)], [allocation(20, 1000, event=0), allocation(95, -1000)], ended_ns=120)
    return merge([of_rank(0, mm, who='"first"', job='"j"'), of_rank(1, add, who='"second"', job='"j"')])


def test_an_event_has_the_bytes_of_its_own_process(both: Trace) -> None:
    memory = averaged_costs(both).memory
    assert memory is not None
    assert (memory.cpu.tolist(), memory.self_cpu.tolist()) == ([0, 1000], [0, 1000])


def test_an_allocation_during_no_event_of_its_own_process_is_loose(both: Trace) -> None:
    assert both.allocations is not None
    assert both.allocations.time_ns[loose_allocations(both)].tolist() == [95]


def test_a_process_without_counted_events_has_loose_allocations_alone() -> None:
    first = of_rank(0, make_trace([event("mm", 0, 100)], [allocation(50, 10, event=0)]))
    second = of_rank(1, make_trace([event("aten::is_leaf", 0, 100)], [allocation(60, 5)]))
    found = merge([first, second])
    assert found.allocations is not None
    assert found.allocations.nbytes[loose_allocations(found)].tolist() == [5]


def test_each_process_has_a_curve_and_a_peak_of_each_device(both: Trace) -> None:
    devices = memory_devices(both)
    assert [str(device) for device in devices] == ["cpu of rank 0", "cpu of rank 1"]
    curves = [memory_curve(both, device) for device in devices]
    assert [curve.allocated.tolist() for curve in curves] == [[10, 0], [1000, 0]]
    assert [curve.time_ns.tolist() for curve in curves] == [[50, 90], [20, 95]]
    assert [peak(curve) for curve in curves] == [(50, 10, 0), (20, 1000, 1)]
    assert summary(both).peak_bytes == 1000


def test_each_process_has_a_curve_where_a_runtime_tells_only_totals() -> None:
    first = of_rank(0, make_trace([event("mm", 0, 100, memory=(0, 10))]))
    second = of_rank(1, make_trace([event("add", 10, 60, memory=(500, 700))]))
    found = merge([first, second])
    assert [memory_curve(found, one).allocated.tolist() for one in memory_devices(found)] == [[0, 10], [500, 700]]


def test_a_block_ends_with_the_release_of_its_own_process(both: Trace) -> None:
    found = [largest_kinds(both, device) for device in memory_devices(both)]
    assert [[alike.largest[:3:2] for alike in kinds] for kinds in found] == [[(10, 90)], [(1000, 95)]]


def test_the_table_of_allocations_names_the_process(both: Trace) -> None:
    largest = largest_allocations(both)
    assert (largest["label"], largest["detail"]) == (["add", "mm"], ["rank 1", "rank 0, temporary"])


def test_a_gradient_is_a_block_of_the_process_that_kept_it() -> None:
    def backward(rank: int, made_ns: int, kept_ns: int) -> Trace:
        name = "torch::autograd::AccumulateGrad"
        rows = [
            event("MmBackward0", made_ns - 1, made_ns + 1, phase="backward"),
            event(name, kept_ns, kept_ns + 1, phase="backward", shapes=((2,),)),
        ]
        return of_rank(rank, make_trace(rows, [allocation(made_ns, 8, event=0)]))

    # Rank 1 has made its block as rank 0 keeps its gradient, and keeps none of its own.
    second = backward(1, made_ns=20, kept_ns=50)
    second = replace(second, shape=np.array([-1, -1]))
    found = merge([backward(0, made_ns=10, kept_ns=40), second])
    assert categories(found).tolist() == [Category.GRADIENT, Category.UNKNOWN]


def test_ops_of_two_processes_at_one_moment_are_no_overlap_and_leave_no_time_outside(both: Trace) -> None:
    of = summary(both)
    assert (of.wall_ns, of.in_ops_ns, of.threads) == (120, 150, 2)
    assert outside_ops_ns(both) is None
    assert outside_ops_ns(of_rank(0, make_trace([event("mm", 0, 40)], ended_ns=100))) == 60


def test_wall_time_is_what_the_windows_cover() -> None:
    parts = [
        of_rank(rank, make_trace([event("mm", *window)]))
        for rank, window in enumerate([(0, 100), (50, 120), (200, 210), (205, 207)])
    ]
    assert summary(merge(parts)).wall_ns == 130


def test_lanes_follow_their_process_and_carry_its_title() -> None:
    rows = [
        event("mm", 0, 50),
        event("waiting", 0, 90, kind="scope", is_async=True),
        event("gemm", 10, 40, kind="kernel", device="CUDA", thread=7),
    ]
    found = lanes(merge([of_rank(0, make_trace(rows)), of_rank(1, make_trace(rows))])).lanes
    names = ("thread 1", "async", "CUDA:0 stream 7")
    assert [lane.title for lane in found] == [f"rank {rank}, {name}" for rank in (0, 1) for name in names]
    assert [(lane.first_row, lane.rows) for lane in found] == [(row, 1) for row in range(6)]
    assert [lane.title for lane in lanes(make_trace(rows)).lanes] == list(names)


def test_threads_of_two_processes_are_two_groups(both: Trace) -> None:
    threads = group(both, "thread")
    assert threads.values(both) == [(("rank 0", "thread", 0),), (("rank 1", "thread", 0),)]
    assert threads.total_ns.tolist() == [100, 50]


@pytest.mark.parametrize(
    ("process", "title"),
    [
        (Process(7, 2, "a", "train"), "train rank 2"),
        (Process(7, label="train"), "train"),
        (Process(7, host="a"), "a process 7"),
        (Process(7), "process 7"),
    ],
)
def test_a_process_is_called_by_label_and_rank_or_else_by_host_and_number(process: Process, title: str) -> None:
    assert process.title == title


def test_the_number_of_processes_is_told_where_there_are_several(both: Trace) -> None:
    assert repr(both) == "<Trace of 2 events, 2 threads, 2 processes>"
    assert repr(make_trace([event("mm", 0, 1)])) == "<Trace of 1 events, 1 threads>"


def test_an_allocation_on_a_thread_without_events_stays_with_its_process() -> None:
    def with_unknown_thread(trace: Trace) -> Trace:
        assert trace.allocations is not None
        return replace(trace, allocations=replace(trace.allocations, track=np.array([-1])))

    first = of_rank(0, with_unknown_thread(make_trace([event("mm", 0, 100)], [allocation(50, 10)])))
    second = of_rank(1, with_unknown_thread(make_trace([event("add", 0, 100)], [allocation(60, 20)])))
    found = merge([first, second])
    assert [memory_curve(found, one).allocated.tolist() for one in memory_devices(found)] == [[10], [20]]
    memory = averaged_costs(found).memory
    assert memory is not None
    assert memory.cpu.tolist() == [10, 20]


def test_a_process_that_learns_its_rank_between_two_windows_is_one() -> None:
    early = replace(make_trace([event("mm", 0, 1)]), processes=(Process(7, -1, "a"),))
    late = replace(make_trace([event("mm", 5, 6)]), processes=(Process(7, 3, "a"),))
    for parts in ([early, late], [late, early]):
        found = merge(parts)
        assert (found.processes, len(found.tracks)) == ((Process(7, 3, "a"),), 1)


def test_a_chrome_trace_keeps_processes_devices_and_metadata_apart(both: Trace, tmp_path: Path) -> None:
    kernels = [event("gemm", 20, 30, kind="kernel", device="CUDA", device_index=1, thread=7)]
    path = tmp_path / "trace.json"
    chrome_trace.write(merge([both, *(of_rank(rank, make_trace(kernels)) for rank in (0, 1))]), path)
    document = json.loads(path.read_text())
    events = document["traceEvents"]

    def named(name: str, key: str) -> dict[Any, Any]:
        return {one["pid"]: one["args"][key] for one in events if one["ph"] == "M" and one["name"] == name}

    assert {one["name"]: (one["pid"], one["tid"]) for one in events if one.get("cat") == "cpu_op"} == {
        "mm": (1, 1),
        "add": (2, 1),
    }
    assert [one["pid"] for one in events if one.get("cat") == "kernel"] == [5_000_001, 5_001_001]
    assert [one["pid"] for one in events if one["name"] == "[memory]"] == [2, 1, 1, 2]
    labels = {1: "rank 0 CPU", 2: "rank 1 CPU", 5_000_001: "rank 0 CUDA 1", 5_001_001: "rank 1 CUDA 1"}
    assert {pid: label for pid, label in named("process_labels", "labels").items() if pid != "Spans"} == labels
    assert named("who", "value") == {1: "first", 2: "second"}
    assert (document.get("who"), document["job"], document.get("host_name")) == (None, "j", None)


def test_a_memory_timeline_is_of_one_process(both: Trace, tmp_path: Path) -> None:
    trace = replace(both, recorded=Recorded(record_shapes=True, profile_memory=True, with_stack=True))
    written = [
        memory_timeline.write(trace, tmp_path / "memory.json", device) for device in (None, "cpu", "cpu of rank 1")
    ]
    assert [timeline.nbytes.tolist() for timeline in written] == [[10, -10], [10, -10], [1000, -1000]]
