"""Devices on the timeline: a lane for each stream, gaps by cause, and arrows from calls to kernels."""

from typing import Any

import numpy as np
import pytest
from traces import event, make_trace

from mtprof_nb.analysis.devices.idle_gaps import CAUSES
from mtprof_nb.model.trace import Trace
from mtprof_nb.views.scene import Scene
from mtprof_nb.views.tabs.timeline.launches import launches_of, with_launches
from mtprof_nb.views.tabs.timeline.timeline_blocks import arranged
from mtprof_nb.views.tabs.timeline.timeline_tab import TimelineTab


def on_gpu(name: str, start: int, end: int, **facts: Any) -> dict[str, Any]:
    return event(name, start, end, **{"kind": "kernel", "device": "CUDA", "thread": 7, **facts})


def launched() -> Trace:
    """An op in an op that launches two kernels, after gaps that are the host's, and a kernel without an op."""
    return make_trace(
        [
            event("aten::linear", 0, 900),
            event("aten::addmm", 100, 800),
            event("cudaLaunchKernel", 200, 300, kind="runtime", launcher=1),
            on_gpu("gemm", 400, 600, launcher=1, launch=2),
            event("cudaLaunchKernel", 650, 700, kind="runtime", launcher=1),
            on_gpu("bias", 750, 850, launcher=1, launch=4),
            on_gpu("another", 950, 1_000, thread=8),
            event("step", 400, 1_000, kind="device_scope", device="CUDA", thread=7),
        ]
    )


def test_each_stream_has_a_lane_and_the_gaps_of_its_device_stand_above_the_first() -> None:
    trace = launched()
    chart = arranged(trace)
    titles = [lane["title"] for lane in chart.lane_rows()]
    gaps = chart.window(*chart.whole_ns)["gaps"]

    assert titles == ["thread 1", "CUDA:0 stream 7 scopes", "CUDA:0 stream 7", "CUDA:0 stream 8"]
    assert gaps == {
        "lane": [2, 2],
        "start_ns": [600, 850],
        "length_ns": [150, 100],
        "cause": [CAUSES.index("host"), CAUSES.index("kernel")],
        "count": [1, 1],
        "time_ns": [150, 100],
    }
    rows = chart.lane_rows()
    assert [lane["rows_top"] > lane["top"] for lane in rows] == [False, False, True, False]


def test_gaps_that_are_too_short_to_draw_apart_keep_the_time_of_each_cause() -> None:
    rows = [on_gpu("k", 1_000 * at, 1_000 * at + 900) for at in range(1_000)]
    trace = make_trace(rows)
    chart = arranged(trace)
    gaps = chart.window(*chart.whole_ns, 100)["gaps"]

    assert len(gaps["lane"]) <= 130
    assert (sum(gaps["count"]), sum(gaps["time_ns"])) == (999, 99_900)


def test_a_kernel_tells_its_op() -> None:
    trace = launched()
    bars, names = arranged(trace).window(0, 1_000)["bars"], trace.names
    told = {names[name]: op for name, op in zip(bars["name"], bars["op"], strict=True)}

    assert names[told["gemm"]] == "aten::addmm"
    assert told["another"] == told["aten::linear"] == -1


@pytest.mark.parametrize(
    ("name", "calls"),
    [("aten::linear", [200, 650]), ("aten::addmm", [200, 650]), ("bias", [650]), ("another", []), ("step", [])],
)
def test_an_event_has_arrows_from_its_calls_to_their_kernels(name: str, calls: list[int]) -> None:
    trace = launched()
    (picked,) = np.flatnonzero(trace.name == trace.names.index(name))
    arrows = launches_of(arranged(trace), int(picked))

    assert (arrows["from_ns"], arrows["total"]) == (calls, len(calls))
    assert arrows["to_ns"] == [{200: 400, 650: 750}[at] for at in calls]
    rows = arranged(trace).lanes.row
    assert set(arrows["from_row"]) <= {rows[2]}
    assert set(arrows["to_row"]) <= {int(rows[trace.name == trace.names.index("gemm")].item())}


def test_arrows_are_few_and_tell_how_many_there_are() -> None:
    rows = [event("aten::loop", 0, 100_000)]
    for at in range(500):
        rows.append(event("cudaLaunchKernel", 100 * at + 1, 100 * at + 50, kind="runtime"))
        rows.append(on_gpu("k", 100 * at + 60, 100 * at + 90, launch=2 * at + 1))
    trace = make_trace(rows)
    arrows = launches_of(arranged(trace), 0)

    assert (len(arrows["from_row"]), arrows["total"]) == (200, 500)


@pytest.mark.parametrize(
    ("name", "lit"),
    [
        ("aten::linear", {"aten::linear", "cudaLaunchKernel", "gemm", "bias"}),
        ("gemm", {"gemm", "aten::addmm", "cudaLaunchKernel"}),
        ("another", {"another"}),
    ],
)
def test_a_selection_lights_what_it_launched_and_what_launched_it(name: str, lit: set[str]) -> None:
    trace = launched()
    chosen = with_launches(trace, trace.name == trace.names.index(name))

    assert {trace.names[one] for one in trace.name[chosen]} == lit


def test_there_is_no_gap_and_no_arrow_without_a_device() -> None:
    scene = Scene(make_trace([event("aten::mm", 0, 10)]))
    tab = TimelineTab(scene)

    assert (tab.first()["causes"], tab.first()["gaps"]["lane"]) == ([], [])
    assert tab.answer({"ask": "launches", "event": 0})["total"] == 0
