"""Columns read from Kineto's events, on hand-made ones."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from kineto_made_by_hand import ACCESSORS, Event, columns_of

from mtprof_nb.capture.activities import device_type_name
from mtprof_nb.capture.hook import Request
from mtprof_nb.capture.kineto.kineto_build import Noted, build_trace
from mtprof_nb.capture.kineto.kineto_devices import read_devices
from mtprof_nb.capture.kineto.kineto_events import read_columns
from mtprof_nb.capture.kineto.kineto_tree import FlatTree, indices_of_inputs_on
from mtprof_nb.model.trace import KINDS, PHASES, Track


def on(activity: str, device: str, **facts: Any) -> Event:
    """An event of this activity on the main thread; it ran on a device unless that is CPU."""
    given = {"name": activity, "device_index": 0, "start_thread_id": 1, "device_resource_id": 100, **facts}
    return Event(device_type=SimpleNamespace(name=device), activity_type=activity, **given)


def read(*events: Event) -> dict[str, Any]:
    for start, made in enumerate(events):
        made.facts.setdefault("start_ns", start + 1)
    return read_devices(columns_of(*events), ACCESSORS, lambda name: name)


def test_an_index_is_a_devices_and_not_the_process_that_kineto_gives_for_the_cpu() -> None:
    found = read(
        on("cpu_op", "CPU", device_index=10101, correlation_id=1),
        on("kernel", "CUDA", device_index=1, linked_correlation_id=1),
        on("kernel", "CUDA", device_index=-1),
    )
    assert [found["devices"][device] for device in found["device"]] == ["CPU", "CUDA", "CUDA"]
    assert found["device_index"].tolist() == [0, 1, -1]
    assert found["launcher"].tolist() == [-1, 0, -1]


def test_a_kernel_refers_to_the_op_and_to_the_runtime_call_that_launched_it() -> None:
    found = read(
        on("cpu_op", "CPU", correlation_id=1),
        on("cuda_runtime", "CPU", correlation_id=70, linked_correlation_id=1),
        on("cuda_driver", "CPU", correlation_id=71, linked_correlation_id=1),
        on("concurrent_kernel", "CUDA", correlation_id=71, linked_correlation_id=1),
        on("gpu_memcpy", "CUDA", correlation_id=70, linked_correlation_id=1),
        on("gpu_memset", "CUDA", correlation_id=99),
        on("cuda_sync", "CUDA"),
        on("gpu_user_annotation", "CUDA"),
        on("overhead", "CPU"),
    )
    assert [KINDS[kind] for kind in found["kind"]] == [
        *("op", "runtime", "runtime"),
        *("kernel", "copy", "set", "sync", "device_scope"),
        "runtime",
    ]
    assert found["launcher"].tolist() == [-1, 0, 0, 0, 0, -1, -1, -1, -1]
    assert found["launch"].tolist() == [-1, -1, -1, 2, 1, -1, -1, -1, -1]


def test_a_call_with_the_number_of_an_op_is_not_taken_for_it() -> None:
    found = read(
        on("cuda_runtime", "CPU", name="cudaDeviceSynchronize", correlation_id=5),
        on("cpu_op", "CPU", correlation_id=5),
        on("kernel", "CUDA", correlation_id=70, linked_correlation_id=5),
    )
    assert found["launcher"].tolist() == [-1, -1, 1]


@pytest.mark.parametrize(
    ("device", "kinds"),
    [
        ("XPU", {"xpu_runtime": "runtime", "xpu_driver": "runtime", "kernel": "kernel", "gpu_memcpy": "copy"}),
        ("NPU", {"privateuse1_runtime": "runtime", "privateuse1_driver": "runtime", "kernel": "kernel"}),
        ("MTIA", {"mtia_runtime": "runtime", "mtia_ccp_events": "kernel", "mtia_workloadd": "device_scope"}),
        ("HPU", {"hpu_op": "kernel"}),
    ],
)
def test_each_device_has_kernels_and_calls(device: str, kinds: dict[str, str]) -> None:
    torch_name = {"NPU": "PrivateUse1"}.get(device, device)
    events = [on(activity, "CPU" if kind == "runtime" else torch_name) for activity, kind in kinds.items()]
    for start, made in enumerate(events):
        made.facts["start_ns"] = start + 1
    found = read_devices(columns_of(*events), ACCESSORS, device_type_name)

    assert [KINDS[kind] for kind in found["kind"]] == list(kinds.values())
    assert {found["devices"][one] for one in found["device"]} == {device} | ({"CPU"} & {*found["devices"]})
    assert {track.device for track in found["tracks"] if track.kind == "stream"} == {f"{device}:0"}


def test_a_call_outside_ops_is_on_the_thread_that_made_it() -> None:
    found = read(
        on("cpu_op", "CPU", correlation_id=1),
        on("cpu_op", "CPU", correlation_id=2, start_thread_id=2, device_resource_id=200),
        # Kineto gives both the thread that ended the recording.
        on("cuda_runtime", "CPU", correlation_id=70, start_thread_id=1, device_resource_id=200),
        on("kernel", "CUDA", correlation_id=70, start_thread_id=1, device_resource_id=7),
        on(
            "cuda_runtime", "CPU", correlation_id=71, linked_correlation_id=1, start_thread_id=1, device_resource_id=200
        ),
        on("cuda_runtime", "CPU", correlation_id=72, start_thread_id=1, device_resource_id=999),
    )
    assert [found["tracks"][track].native_id for track in found["track"]] == [100, 200, 200, 7, 100, 100]


def test_a_thread_is_known_by_its_ops_even_if_a_kernel_comes_first() -> None:
    found = read(on("kernel", "CUDA", device_resource_id=7), on("cpu_op", "CPU", correlation_id=1))

    assert [(track.native_id, track.kind) for track in found["tracks"]] == [(100, "thread"), (7, "stream")]


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
