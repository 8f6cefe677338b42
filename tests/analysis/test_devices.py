"""Figures of devices on hand-made recordings: busy, idle and why, launches, copies, collectives."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from traces import Row, event, make_trace

from mtprof_nb.analysis.devices.device_figures import device_figures
from mtprof_nb.analysis.devices.idle_gaps import CAUSES, host_waiting_ns, idle_gaps
from mtprof_nb.analysis.devices.recorded_devices import Device, device_work
from mtprof_nb.analysis.devices.who_waits import who_waits
from mtprof_nb.model.trace import Trace, empty_trace

GPU = Device("CUDA", 0)


def on_gpu(name: str, start: int, end: int, kind: str = "kernel", **facts: Any) -> Row:
    return event(name, start, end, kind=kind, **{"device": "CUDA", "thread": 7, **facts})


def call(name: str, start: int, end: int, **facts: Any) -> Row:
    return event(name, start, end, kind="runtime", **facts)


def causes(trace: Trace) -> list[tuple[int, int, str]]:
    """Start, end and cause of each gap of the first device."""
    gaps = idle_gaps(trace, next(iter(device_work(trace).values())))
    found = zip(gaps.start_ns.tolist(), gaps.end_ns.tolist(), gaps.cause.tolist(), strict=True)
    return [(start, end, CAUSES[cause]) for start, end, cause in found]


def test_computing_exposed_communication_exposed_copies_and_idle_time_sum_up_to_the_span() -> None:
    trace = make_trace(
        [
            on_gpu("gemm", 100, 200),
            on_gpu("relu", 190, 250, thread=8),
            on_gpu("ncclAllReduce", 240, 300, kind="collective", thread=9),
            on_gpu("Memcpy HtoD", 290, 340, kind="copy", thread=10),
            on_gpu("Memset", 330, 335, kind="set"),
            on_gpu("gemm", 400, 410),
            on_gpu("Stream Wait Event", 0, 900, kind="sync"),
            on_gpu("step", 0, 900, kind="device_scope"),
            event("aten::mm", 0, 1000),
        ]
    )
    (times,) = device_figures(trace)

    assert times.span_ns == 310
    # Kernels from 100 to 250 and from 400 to 410, the set from 330 to 335.
    assert times.computing_ns == 165
    assert times.exposed_communication_ns == 50
    assert times.exposed_copies_ns == 35
    assert times.idle_ns == 60
    assert times.busy_ns == 250
    assert (times.communication_ns, times.copies_ns) == (60, 50)
    assert times.overlap == pytest.approx(10 / 60)


def test_a_device_has_the_work_of_all_its_streams_and_no_other_device() -> None:
    trace = make_trace(
        [
            on_gpu("a", 0, 10, thread=7),
            on_gpu("b", 20, 30, thread=8),
            on_gpu("c", 25, 45, device_index=1),
            on_gpu("d", 0, 5, device="XPU"),
            event("aten::mm", 0, 100),
        ]
    )
    figures = {str(one.device): one for one in device_figures(trace)}

    assert {name: (one.span_ns, one.busy_ns, one.streams) for name, one in figures.items()} == {
        "cuda:0": (30, 20, 2),
        "cuda:1": (20, 20, 1),
        "xpu:0": (5, 5, 1),
    }


def test_a_gap_is_the_hosts_if_the_next_kernel_was_launched_after_it_began() -> None:
    trace = make_trace(
        [
            call("cudaLaunchKernel", 0, 5),
            on_gpu("a", 10, 20, launch=0),
            call("cudaLaunchKernel", 20, 60),
            on_gpu("b", 70, 80, launch=2),
            # Under way as the gap begins.
            call("cudaLaunchKernel", 75, 85),
            on_gpu("c", 95, 100, launch=4),
        ]
    )
    assert causes(trace) == [(20, 70, "host"), (80, 95, "host")]


@pytest.mark.parametrize(("start", "cause"), [(30, "kernel"), (10_020, "host")])
def test_a_short_gap_before_a_copy_that_the_host_waits_for_is_the_devices(start: int, cause: str) -> None:
    trace = make_trace(
        [
            on_gpu("a", 10, 20),
            call("cudaMemcpyAsync", 5, start + 20),
            on_gpu("Memcpy DtoH (Device -> Pageable)", start, start + 10, kind="copy", launch=1),
        ]
    )
    assert causes(trace) == [(20, start, cause)]


def test_a_short_gap_before_a_queued_kernel_is_the_devices() -> None:
    trace = make_trace(
        [
            call("cudaLaunchKernel", 0, 1),
            on_gpu("a", 10, 20, launch=0),
            call("cudaLaunchKernel", 2, 3),
            on_gpu("b", 10_019, 10_020, launch=2),
            call("cudaLaunchKernel", 4, 5),
            on_gpu("c", 20_020, 20_021, launch=4),
        ]
    )
    assert causes(trace) == [(20, 10_019, "kernel"), (10_020, 20_020, "other")]


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("cudaStreamSynchronize", "synchronisation"),
        ("hipDeviceSynchronize", "synchronisation"),
        ("aclrtSynchronizeStream", "synchronisation"),
        ("cudaStreamIsCapturing", "host"),
        ("cudaMemcpyAsync", "host"),
    ],
)
def test_a_gap_is_a_synchronisations_if_the_launching_thread_waited_as_it_began(name: str, cause: str) -> None:
    trace = make_trace(
        [
            on_gpu("a", 10, 20),
            call(name, 5, 25),
            call("cudaLaunchKernel", 40, 50),
            on_gpu("b", 60, 70, launch=2),
        ]
    )
    assert causes(trace) == [(20, 60, cause)]


@pytest.mark.parametrize(("returned", "cause", "waited"), [(25, "synchronisation", 20), (19, "host", 0)])
def test_the_host_waits_in_a_copy_that_ends_before_its_call(returned: int, cause: str, waited: int) -> None:
    trace = make_trace(
        [
            call("cudaMemcpyAsync", 5, returned),
            on_gpu("Memcpy DtoH (Device -> Pageable)", 10, 20, kind="copy", launch=0),
            call("cudaLaunchKernel", 40, 50),
            on_gpu("b", 60, 70, launch=2),
        ]
    )
    assert causes(trace) == [(20, 60, cause)]
    assert host_waiting_ns(trace, 0) == waited


def test_the_waiting_of_another_thread_is_no_cause() -> None:
    trace = make_trace(
        [
            on_gpu("a", 10, 20),
            call("cudaEventSynchronize", 5, 25, thread=2),
            call("cudaLaunchKernel", 40, 50),
            on_gpu("b", 60, 70, launch=2),
        ]
    )
    assert causes(trace) == [(20, 60, "host")]


def test_a_stream_that_waits_for_another_is_synchronised() -> None:
    rows = [
        call("cudaLaunchKernel", 0, 1),
        on_gpu("a", 10, 20),
        on_gpu("b", 50_000, 50_010, launch=0),
    ]
    wait = on_gpu("Stream Wait Event", 30_000, 40_000, kind="sync")

    assert causes(make_trace([*rows, wait])) == [(20, 50_000, "synchronisation")]
    assert causes(make_trace([*rows, {**wait, "thread": 8}])) == [(20, 50_000, "other")]


def test_a_gap_that_another_stream_fills_is_none_of_the_device() -> None:
    trace = make_trace([on_gpu("a", 0, 10), on_gpu("b", 5, 30, thread=8), on_gpu("c", 30, 40)])

    assert causes(trace) == []
    of_stream = np.flatnonzero(trace.track == trace.track[0])
    assert idle_gaps(trace, of_stream).by_cause() == {"host": 0, "kernel": 20, "synchronisation": 0, "other": 0}


def test_a_launch_delay_is_from_the_end_of_the_launch_to_the_start_of_the_kernel() -> None:
    trace = make_trace(
        [
            call("cudaLaunchKernel", 0, 10),
            on_gpu("a", 15, 20, launch=0),
            call("cudaLaunchKernel", 10, 20),
            on_gpu("b", 60, 70, launch=2),
            call("cudaMemcpyAsync", 20, 90),
            on_gpu("started before the call returned", 80, 88, launch=4),
            on_gpu("launch not recorded", 95, 99),
        ]
    )
    (one,) = device_figures(trace)

    assert (one.launch_delay_median_ns, one.launch_delay_mean_ns, one.launch_delay_max_ns) == (5, 15, 40)


def test_the_queue_holds_what_was_launched_and_has_not_started() -> None:
    trace = make_trace(
        [
            call("cudaLaunchKernel", 0, 10),
            on_gpu("a", 40, 50, launch=0),
            call("cudaGraphLaunch", 20, 30),
            on_gpu("b", 50, 60, launch=2),
            on_gpu("c", 60, 70, launch=2),
        ]
    )
    (one,) = device_figures(trace)

    assert one.queue_max == 3
    assert one.queue_mean == (20 * 1 + 20 * 3 + 10 * 2 + 10 * 1) / 60


def test_short_kernels_copies_and_collectives_are_counted() -> None:
    trace = make_trace(
        [
            on_gpu("short", 0, 9_999),
            on_gpu("long", 10_000, 20_000),
            on_gpu("Memcpy HtoD", 20_000, 20_010, kind="copy", moved_bytes=4_096),
            on_gpu("Memcpy DtoH", 20_010, 20_020, kind="copy", moved_bytes=-1),
            on_gpu("ncclAllReduce", 20_020, 20_030, kind="collective", moved_bytes=1_024),
        ]
    )
    (figures,) = device_figures(trace)

    assert (figures.kernels, figures.short_kernels, figures.short_kernels_ns) == (2, 1, 9_999)
    assert (figures.copies, figures.copied_bytes) == (2, 4_096)
    assert (figures.collectives, figures.collective_bytes) == (1, 1_024)


def test_the_host_waits_while_any_of_its_threads_is_in_a_synchronising_call() -> None:
    trace = make_trace(
        [
            call("cudaStreamSynchronize", 0, 30),
            call("cudaDeviceSynchronize", 20, 50, thread=2),
            call("cudaLaunchKernel", 60, 90),
        ]
    )
    assert host_waiting_ns(trace, 0) == 50


def test_without_devices_there_are_no_figures() -> None:
    for trace in (empty_trace(), make_trace([event("aten::mm", 0, 10)])):
        assert device_figures(trace) == ()
        assert who_waits(trace) == ""


def idle_for(idle_us: int, busy_us: int, *, waits: str = "", devices: int = 1) -> Trace:
    """Two kernels a device with a gap between them, in which the second is launched, after the host called `waits`."""
    busy, idle = busy_us * 1_000, idle_us * 1_000
    rows: list[Row] = []
    for index in range(devices):
        rows += [
            on_gpu("a", 0, busy // 2, device_index=index),
            call("cudaLaunchKernel", busy // 2 + idle // 2, busy // 2 + idle // 2 + 1, thread=index),
            on_gpu("b", busy // 2 + idle, busy + idle, device_index=index, launch=3 * index + 1),
        ]
    if waits:
        rows.append(call(waits, 10, busy // 2 + 10, thread=0))
    return make_trace(rows)


def test_a_sentence_says_which_side_waits_for_which() -> None:
    assert who_waits(idle_for(92, 8)) == "the GPU is idle 92 % of the time, waiting for the host"
    assert who_waits(idle_for(60, 40, devices=2)) == "the 2 GPUs are idle 60 % of the time, waiting for the host"
    assert (
        who_waits(idle_for(60, 40, waits="cudaDeviceSynchronize"))
        == "the GPU is idle 60 % of the time, after the host waited for it"
    )
    assert (
        who_waits(idle_for(1, 99, waits="cudaDeviceSynchronize"))
        == "the GPU is busy 99 % of the time, and the host waits for it"
    )
    assert who_waits(idle_for(1, 99)) == "the GPU is busy 99 % of the time"
    assert who_waits(idle_for(29, 71)) == "the GPU is busy 71 % of the time"
    assert who_waits(idle_for(30, 70)) == "the GPU is idle 30 % of the time, waiting for the host"


def test_a_recording_that_is_much_longer_than_the_work_of_devices_is_told() -> None:
    trace = idle_for(1, 99)
    half, most = (replace(trace, ended_ns=end, windows=((0, end),)) for end in (150_000, 142_000))

    assert who_waits(half) == (
        "the GPU is busy 99 % of the 100 µs from the first kernel to the last; the recording takes 150 µs"
    )
    assert who_waits(most) == "the GPU is busy 99 % of the time"


def test_devices_that_work_at_different_times_have_no_time_in_common() -> None:
    trace = make_trace([on_gpu("a", 0, 100), on_gpu("b", 900, 1_000, device_index=1)], ended_ns=2_000)

    assert who_waits(trace) == "the 2 GPUs are busy 100 % of their time"


def test_there_is_no_sentence_where_it_is_not_clear() -> None:
    unknown = make_trace([on_gpu("a", 0, 10_000), on_gpu("b", 90_000, 100_000)])
    assert who_waits(unknown) == ""
