"""Columns read from Kineto's events, on hand-made ones."""

from types import SimpleNamespace
from typing import Any

import numpy as np
from kineto_made_by_hand import ACCESSORS, Event

from mtprof_nb.capture.kineto.kineto_events import read_columns, read_devices
from mtprof_nb.capture.kineto.kineto_tree import FlatTree, indices_of_inputs_on
from mtprof_nb.model.trace import KINDS


def at(device: str, device_index: int, **facts: Any) -> Event:
    return Event(device_type=SimpleNamespace(name=device), device_index=device_index, activity_type="cpu_op", **facts)


def test_an_index_is_a_devices_and_not_the_process_that_kineto_gives_for_the_cpu() -> None:
    events = [at("CPU", 10101, correlation_id=1), at("CUDA", 1, linked_correlation_id=1), at("CUDA", -1)]
    found = read_devices(events, ACCESSORS, lambda name: name)

    assert [found.devices[device] for device in found.device] == ["CPU", "CUDA", "CUDA"]
    assert found.device_index.tolist() == [0, 1, -1]
    assert found.launcher.tolist() == [-1, 0, -1]


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
    found = read_devices(events, ACCESSORS, lambda name: name)

    assert [KINDS[kind] if kind >= 0 else "" for kind in found.kind] == [
        *("", "runtime", "runtime"),
        *("kernel", "copy", "set", "sync", "device_scope"),
    ]
    assert found.launcher.tolist() == [-1, 0, 0, 0, 0, -1, -1, -1]
    assert found.launch.tolist() == [-1, -1, -1, 2, 1, -1, -1, -1]


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
