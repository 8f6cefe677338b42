"""Columns read from Kineto's events, on hand-made ones."""

from types import SimpleNamespace
from typing import Any

import numpy as np
from kineto_made_by_hand import ACCESSORS, Event

from mtprof_nb.capture.hook import Request
from mtprof_nb.capture.kineto.kineto_build import Noted, build_trace
from mtprof_nb.capture.kineto.kineto_events import read_columns, read_devices
from mtprof_nb.capture.kineto.kineto_tree import FlatTree, indices_of_inputs_on
from mtprof_nb.model.trace import KINDS, PHASES, Track


def at(device: str, device_index: int, **facts: Any) -> Event:
    return Event(device_type=SimpleNamespace(name=device), device_index=device_index, activity_type="cpu_op", **facts)


def test_an_index_is_a_devices_and_not_the_process_that_kineto_gives_for_the_cpu() -> None:
    events = [at("CPU", 10101, correlation_id=1), at("CUDA", 1, linked_correlation_id=1), at("CUDA", -1)]
    found, _ = read_devices(events, ACCESSORS, lambda name: name)

    assert [found["devices"][device] for device in found["device"]] == ["CPU", "CUDA", "CUDA"]
    assert found["device_index"].tolist() == [0, 1, -1]
    assert found["launcher"].tolist() == [-1, 0, -1]


def test_a_kernel_refers_to_the_op_and_to_the_runtime_call_that_launched_it() -> None:
    def on(activity: str, device: str, **facts: Any) -> Event:
        return Event(device_type=SimpleNamespace(name=device), device_index=0, activity_type=activity, **facts)

    events = [
        on("cpu_op", "CPU", correlation_id=1),
        on("cuda_runtime", "CPU", correlation_id=70, linked_correlation_id=1),
        on("cuda_driver", "CPU", correlation_id=71, linked_correlation_id=1),
        on("concurrent_kernel", "CUDA", correlation_id=71, linked_correlation_id=1),
        on("gpu_memcpy", "CUDA", correlation_id=70, linked_correlation_id=1),
        on("gpu_memset", "CUDA", correlation_id=99),
        on("cuda_sync", "CUDA"),
        on("gpu_user_annotation", "CUDA"),
    ]
    found, _ = read_devices(events, ACCESSORS, lambda name: name)

    assert [KINDS[kind] if kind >= 0 else "" for kind in found["kind"]] == [
        *("", "runtime", "runtime"),
        *("kernel", "copy", "set", "sync", "device_scope"),
    ]
    assert found["launcher"].tolist() == [-1, 0, 0, 0, 0, -1, -1, -1]
    assert found["launch"].tolist() == [-1, -1, -1, 2, 1, -1, -1, -1]


def test_every_one_of_many_threads_has_a_track() -> None:
    count = np.iinfo(np.int16).max + 3
    events = [
        Event(name="mm", start_ns=row, duration_ns=1, start_thread_id=row + 1, device_resource_id=row + 1)
        for row in range(count)
    ]
    results = SimpleNamespace(events=lambda: events)
    found = read_columns(results, ACCESSORS, with_python=False, thread_names={row + 1: "x" for row in range(count)})

    assert found.thread.tolist() == list(range(count))
    assert [thread.number for thread in found.threads] == list(range(1, count + 1))


def test_an_op_is_on_the_device_of_its_first_tensor_of_that_type() -> None:
    def tensor(device: str, index: int | None) -> Any:
        return SimpleNamespace(device=SimpleNamespace(type=device, index=index))

    inputs = {
        11: [tensor("cpu", -1), tensor("npu", 1), tensor("npu", 0)],
        12: [3.0, None, [tensor("cpu", None), tensor("npu", 2)]],
        13: [tensor("npu", None)],
        14: [tensor("cpu", -1), []],
    }
    nodes = [
        SimpleNamespace(correlation_id=correlation, extra_fields=SimpleNamespace(inputs=values))
        for correlation, values in inputs.items()
    ]
    tree = FlatTree(nodes, np.zeros(4, np.int64), np.full(4, -1))

    assert indices_of_inputs_on(tree, "npu") == {11: 1, 12: 2, 13: 0}


def test_a_kernel_is_on_the_track_of_its_stream_in_the_phase_of_its_op_and_all_events_are_in_order() -> None:
    def made(name: str, start: int, activity: str, **facts: Any) -> Event:
        given = {"start_thread_id": 1, "sequence_nr": -1, "device_index": 0, "extra_meta": {}, **facts}
        device = SimpleNamespace(name=given.pop("device", "CPU"))
        return Event(name=name, start_ns=start, duration_ns=10, activity_type=activity, device_type=device, **given)

    on_gpu = {"device": "CUDA", "linked_correlation_id": 2, "start_thread_id": 7, "device_index": 1}
    events = [
        made("ncclAllReduce", 50, "kernel", correlation_id=70, device_resource_id=3, **on_gpu),
        made("MmBackward0", 20, "cpu_op", correlation_id=2, scope=1, device_resource_id=100),
        made("cudaLaunch", 22, "cuda_runtime", correlation_id=70, linked_correlation_id=2),
        made("aten::mm", 5, "cpu_op", correlation_id=1, device_resource_id=100),
    ]
    results = SimpleNamespace(events=lambda: events, trace_start_ns=lambda: 1)
    c = SimpleNamespace(
        _autograd=SimpleNamespace(_KinetoEvent=ACCESSORS), _get_privateuse1_backend_name=lambda: "privateuseone"
    )
    request = Request(activities=frozenset({"CPU", "CUDA"}))
    trace = build_trace(results, SimpleNamespace(_C=c), request, Noted())

    assert [trace.names[name] for name in trace.name] == [
        "aten::mm",
        "MmBackward0",
        "cudaLaunch",
        "ncclAllReduce",
    ]
    assert [KINDS[kind] for kind in trace.kind] == ["op", "op", "runtime", "collective"]
    assert [trace.devices[device] for device in trace.device] == ["CPU", "CPU", "CPU", "CUDA"]
    assert trace.tracks[trace.track[3]] == Track(3, "stream 3", "stream", device="CUDA:1")
    assert trace.launcher is not None
    assert trace.launch is not None
    assert (trace.launcher.tolist(), trace.launch.tolist()) == ([-1, -1, 1, 1], [-1, -1, -1, 2])
    assert [PHASES[trace.phase[row]] for row in (1, 3)] == ["backward", "backward"]
    assert trace.correlation_id.tolist() == [1, 2, 0, 0]
