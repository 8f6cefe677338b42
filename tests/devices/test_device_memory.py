"""Memory of devices, reported as their caching allocators do it: with thread, op, line and running total."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from simulated_device import CUDA, SimulatedDevice, Work
from test_recorded_devices import names, recorded

torch = pytest.importorskip("torch")
from torch.profiler import ProfilerActivity, profile  # noqa: E402

BOTH = [ProfilerActivity.CPU, ProfilerActivity.CUDA]


class Allocating(torch.autograd.Function):
    """A node whose forward and backward pass allocate on the device."""

    gpu: SimulatedDevice

    @staticmethod
    def forward(_context, tensor):
        Allocating.gpu.report_memory(0x1000, 512, 512, CUDA, 0)
        return tensor * 2

    @staticmethod
    def backward(_context, gradient):
        Allocating.gpu.report_memory(0x2000, 256, 768, CUDA, 0)
        return gradient * 2


def on_cuda(prof):
    """Bytes, totals, addresses and owners of the records of the device."""
    trace = prof.trace
    records = trace.allocations
    here = np.flatnonzero(records.device == trace.devices.index("CUDA"))
    owners = [trace.names[trace.name[row]] if row >= 0 else "" for row in records.event[here].tolist()]
    return list(zip(records.nbytes[here].tolist(), records.total[here].tolist(), owners, strict=True))


def test_blocks_have_ops_totals_and_releases_of_this_recording(gpu: SimulatedDevice) -> None:
    Allocating.gpu = gpu
    gpu.report_memory(0x9000, 64, 64, CUDA, 0)
    tensor = torch.ones(2, requires_grad=True)
    with recorded(profile_memory=True, with_stack=True) as prof:
        Allocating.apply(tensor).sum().backward()
        gpu.report_memory(0x1000, -512, 256, CUDA, 0)
        gpu.report_memory(0x9000, -64, 192, CUDA, 0)
        gpu.report_memory(0x2000, 128, 128, CUDA, 1)
    assert on_cuda(prof) == [
        (512, 512, "Allocating"),
        (256, 768, "AllocatingBackward"),
        (-512, 256, ""),
        (128, 128, ""),
    ]
    records = prof.trace.allocations
    here = records.device == prof.trace.devices.index("CUDA")
    assert records.device_index[here].tolist() == [0, 0, 0, 1]
    assert records.stack[here][-1] >= 0
    assert (records.nbytes[~here] > 0).any()
    assert {row.device_memory_usage for row in prof.key_averages() if row.key == "Allocating"} == {512}


def test_blocks_of_other_threads_are_recorded_inside_their_ops(gpu: SimulatedDevice) -> None:
    Allocating.gpu = gpu
    with recorded(profile_memory=True) as prof:
        thread = threading.Thread(target=lambda: Allocating.apply(torch.ones(2)))
        thread.start()
        thread.join()
    assert on_cuda(prof) == [(512, 512, "Allocating")]


def test_a_torch_profiler_inside_gets_the_reports_meanwhile(gpu: SimulatedDevice) -> None:
    gpu.plan("aten::add", Work("sim_add"))
    with recorded(profile_memory=True) as prof:
        gpu.report_memory(0x1000, 512, 512, CUDA, 0)
        with profile(activities=BOTH, profile_memory=True) as theirs:
            gpu.report_memory(0x2000, 256, 768, CUDA, 0)
        gpu.report_memory(0x3000, 128, 896, CUDA, 0)
    assert [size for size, *_ in on_cuda(prof)] == [512, 128]
    assert sum(event.self_device_memory_usage for event in theirs.events()) == 256


def test_nothing_is_left_for_a_later_torch_profiler(gpu: SimulatedDevice) -> None:
    Allocating.gpu = gpu
    results: list[int] = []

    def work() -> None:
        Allocating.apply(torch.ones(2))
        recorded_first.set()
        ended.wait()
        with profile(activities=BOTH) as theirs:
            torch.ones(2)
        results.append(len(theirs.events()))

    recorded_first, ended = threading.Event(), threading.Event()
    thread = threading.Thread(target=work)
    with recorded(profile_memory=True):
        thread.start()
        recorded_first.wait()
    ended.set()
    thread.join()
    assert results
    assert not torch.autograd._profiler_enabled()
    with profile(activities=BOTH, profile_memory=True) as theirs:
        gpu.report_memory(0x2000, 256, 768, CUDA, 0)
    assert sum(event.self_device_memory_usage for event in theirs.events()) == 256


def torch_profiler_counts_memory(gpu: SimulatedDevice) -> bool:
    """Whether torch's profiler can be started on this thread, and gets what is reported."""
    with profile(activities=BOTH, profile_memory=True) as theirs:
        gpu.report_memory(0x2000, 256, 768, CUDA, 0)
    return sum(event.self_device_memory_usage for event in theirs.events()) == 256


def test_torch_works_on_a_thread_whose_recording_another_thread_has_stopped(gpu: SimulatedDevice) -> None:
    original = torch.autograd._enable_profiler
    with ThreadPoolExecutor(1) as starter:
        prof = recorded(profile_memory=True)
        starter.submit(prof.start).result()
        starter.submit(gpu.report_memory, 0x1000, 512, 512, CUDA, 0).result()
        prof.stop()
        assert [size for size, *_ in on_cuda(prof)] == [512]
        with recorded(profile_memory=True) as later:
            gpu.report_memory(0x3000, 128, 128, CUDA, 0)
        assert [size for size, *_ in on_cuda(later)] == [128]
        assert starter.submit(torch_profiler_counts_memory, gpu).result()
        assert torch.autograd._enable_profiler is original
        assert starter.submit(torch_profiler_counts_memory, gpu).result()


def test_a_thread_that_has_ended_keeps_nothing_of_torch_replaced(gpu: SimulatedDevice) -> None:
    original = torch.autograd._enable_profiler
    prof = recorded(profile_memory=True)
    with ThreadPoolExecutor(1) as starter:
        starter.submit(prof.start).result()
        task = Path(f"/proc/self/task/{starter.submit(threading.get_native_id).result()}")
    while task.exists():  # Python joins a thread before the system has ended it
        time.sleep(0.001)
    prof.stop()
    assert torch.autograd._enable_profiler is original
    assert torch_profiler_counts_memory(gpu)


def test_torch_works_twice_on_another_thread_during_a_recording_and_after_it(gpu: SimulatedDevice) -> None:
    with ThreadPoolExecutor(1) as other:
        with recorded(profile_memory=True):
            assert other.submit(torch_profiler_counts_memory, gpu).result()
            assert other.submit(torch_profiler_counts_memory, gpu).result()
        assert other.submit(torch_profiler_counts_memory, gpu).result()


def test_without_the_flag_no_report_is_taken(gpu: SimulatedDevice) -> None:
    gpu.plan("aten::add", Work("sim_add"))
    with recorded() as prof, gpu.on():
        torch.ones(2).add(1)
        gpu.report_memory(0x1000, 512, 512, CUDA, 0)
    assert prof.trace.allocations is None
    assert names(prof.trace, prof.trace.on_device) == ["sim_add"]
