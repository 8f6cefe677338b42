"""Recordings of hook `native` with a simulated GPU behind the real Kineto: every link, length and place is known."""

import json
import threading
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest
from simulated_device import Launched, SimulatedDevice, Work

import mtprof_nb as mtp
from mtprof_nb.capture.native import device_recording
from mtprof_nb.model.trace import COLLECTIVE, COPY, DEVICE_SCOPE, KERNEL, OP, RUNTIME, SET, Trace

torch = pytest.importorskip("torch")

OPS = ("mm", "addmm", "add", "mul", "relu", "threshold_backward", "sum", "add_", "mul_", "zero_", "fill_")


def plan_training(gpu: SimulatedDevice) -> None:
    """Each op launches a kernel of its own name and length."""
    for number, op in enumerate(OPS):
        gpu.plan(f"aten::{op}", Work(f"sim_{op}", 1_000 + 137 * number, stream=7 + number % 3))


def train(gpu: SimulatedDevice, steps: int) -> None:
    """A few steps of a small model, whose ops launch."""
    with gpu.on():
        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4))
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        inputs = torch.ones(4, 8)
        for _ in range(steps):
            loss = model(inputs).sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()


def recorded(hook: str = "native", **options: Any) -> mtp.profile:
    return mtp.profile(hook=hook, activities=["cpu", "cuda"], **options)


def names(trace: Trace, rows: Any) -> list[str]:
    return [trace.names[name] for name in trace.name[rows].tolist()]


def assert_every_link(trace: Trace, truth: list[Launched]) -> None:
    """Each kernel belongs to the very call of its op: of the same name on a thread, the n-th has the n-th kernel."""
    native_id = np.array([track.native_id for track in trace.tracks])[trace.track]
    calls: dict[tuple[str, int], list[int]] = defaultdict(list)
    for row in np.flatnonzero(trace.kind == OP).tolist():
        calls[trace.names[trace.name[row]], int(native_id[row])].append(row)
    kernels = np.flatnonzero(trace.kind == KERNEL)
    assert len(kernels) == len(truth)
    by_launch = {int(launch): row for row, launch in zip(kernels.tolist(), trace.launch[kernels].tolist(), strict=True)}
    launches = sorted(by_launch, key=lambda row: int(trace.start_ns[row]))
    seen: Counter[tuple[str, int]] = Counter()
    taken: dict[int, list[Launched]] = defaultdict(list)
    for one in truth:
        taken[one.thread].append(one)
    for launch in launches:
        thread = int(native_id[launch])
        one = taken[thread].pop(0)
        kernel = by_launch[launch]
        name, ns, _, stream = one.works[0]
        assert (names(trace, [kernel])[0], int(trace.duration_ns[kernel])) == (name, ns)
        assert trace.tracks[trace.track[kernel]].native_id == stream
        key = one.op, thread
        assert trace.launcher[kernel] == trace.launcher[launch] == calls[key][seen[key]]
        seen[key] += 1
    assert not any(taken.values())


def test_each_kernel_of_a_training_belongs_to_the_call_of_its_op(gpu: SimulatedDevice) -> None:
    plan_training(gpu)
    with recorded() as prof:
        train(gpu, 20)
    assert len(gpu.truth()) > 400
    assert_every_link(prof.trace, gpu.truth())
    assert prof.trace.notes == ()


@pytest.mark.parametrize("raw_threads", [True, False])
def test_links_of_four_training_threads_are_right(gpu: SimulatedDevice, raw_threads: bool) -> None:
    plan_training(gpu)
    gpu.settings(launch_ns=1_000, raw_threads=raw_threads)
    with recorded() as prof:
        threads = [threading.Thread(target=train, args=(gpu, 10)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert_every_link(prof.trace, gpu.truth())


def test_threads_that_follow_each_other_with_one_number_are_told_apart(gpu: SimulatedDevice) -> None:
    plan_training(gpu)
    with recorded() as prof:
        for _ in range(5):
            thread = threading.Thread(target=train, args=(gpu, 2))
            thread.start()
            thread.join()
    assert_every_link(prof.trace, gpu.truth())


def test_the_backward_pass_on_another_thread_has_its_own_kernels(gpu: SimulatedDevice) -> None:
    gpu.plan("aten::mm", Work("sim_mm", 1_700))
    weight = torch.ones(3, 3, requires_grad=True)

    def backward() -> None:
        with gpu.on():
            loss.backward()

    with recorded(with_stack=True) as prof:
        with gpu.on():
            loss = (weight @ weight).sum()
        thread = threading.Thread(target=backward)
        thread.start()
        thread.join()
    trace = prof.trace
    assert_every_link(trace, gpu.truth())
    backward_rows = np.flatnonzero((trace.kind == KERNEL) & (trace.phase == 1))
    assert Counter(names(trace, backward_rows))["sim_mm"] == 2
    (line,) = (row for row in prof.lines() if "weight @ weight" in row.source)
    assert (line.device_forward_ns, line.device_backward_ns) == (1_700, 2 * 1_700)


def test_copies_sets_and_graphs_have_kinds_bytes_and_one_launch(gpu: SimulatedDevice) -> None:
    gpu.plan("aten::copy_", Work("Memcpy HtoD (Pageable -> Device)", 900, 7, "gpu_memcpy", 4_096))
    gpu.plan("aten::zero_", Work("Memset (Device)", 300, 7, "gpu_memset", 128))
    gpu.plan("aten::mul", Work("a", 100), Work("b", 200), Work("c", 300, 8), call="cudaGraphLaunch")
    ones = torch.ones(2)
    with recorded() as prof, gpu.on():
        ones.copy_(ones)
        ones.zero_()
        ones.mul(ones)
    trace = prof.trace
    there = np.flatnonzero(trace.on_device)
    assert names(trace, there) == ["Memcpy HtoD (Pageable -> Device)", "Memset (Device)", "c", "a", "b"]
    assert trace.kind[there].tolist() == [COPY, SET, KERNEL, KERNEL, KERNEL]
    assert trace.moved_bytes[there].tolist() == [4_096, 128, -1, -1, -1]
    assert names(trace, trace.launcher[there]) == ["aten::copy_", "aten::zero_", *3 * ["aten::mul"]]
    assert len(set(trace.launch[there[2:]].tolist())) == 1
    assert names(trace, trace.launch[there[2:3]]) == ["cudaGraphLaunch"]
    assert [track.title for track in trace.tracks if track.kind == "stream"] == ["stream 7", "stream 8"]


def test_a_collective_has_the_facts_of_the_op_that_launched_it(gpu: SimulatedDevice) -> None:
    with recorded() as prof:
        gpu.all_reduce(64, Work("ncclDevKernel_AllReduce_Sum_f32", 700, stream=20))
    trace = prof.trace
    (row,) = np.flatnonzero(trace.on_device)
    assert trace.kind[row] == COLLECTIVE
    facts = trace.collectives[trace.collective[row]]
    assert (facts.name, facts.group_size, facts.in_elements) == ("allreduce", 2, 64)
    assert trace.moved_bytes[row] == 256
    assert "grid" in json.loads(trace.extras[trace.extra[row]])


def test_scopes_reach_to_devices_by_the_launches_inside_them(gpu: SimulatedDevice) -> None:
    gpu.plan("aten::add", Work("one", 500, 7))
    gpu.plan("aten::mul", Work("two", 700, 8))
    ones = torch.ones(2)
    with recorded() as prof, gpu.on(), mtp.record_function("outer"):
        ones.add(1)
        with mtp.record_function("inner"):
            ones.mul(2)
            ones.add(1)
        ones.add(1)
    trace = prof.trace
    scopes = np.flatnonzero(trace.kind == DEVICE_SCOPE)
    found = {
        (name, trace.tracks[trace.track[row]].native_id): (int(trace.start_ns[row]), int(trace.end_ns[row]))
        for name, row in zip(names(trace, scopes), scopes.tolist(), strict=True)
    }
    adds = np.flatnonzero(trace.kind == KERNEL)[[0, 2, 3]]
    times = [(int(trace.start_ns[row]), int(trace.end_ns[row])) for row in adds]
    assert sorted(found) == [("inner", 7), ("inner", 8), ("outer", 7)]
    assert found["outer", 7] == (times[0][0], times[2][1])
    assert found["inner", 7] == times[1]
    assert names(trace, trace.launcher[scopes]) == names(trace, scopes)


def test_launches_outside_ops_and_lost_records_have_no_owner(gpu: SimulatedDevice) -> None:
    gpu.plan("aten::add", Work("sim_add"))
    ones = torch.ones(2)
    with recorded() as prof:
        gpu.launch(Work("bare"))
    assert prof.trace.launcher[prof.trace.on_device].tolist() == [-1]
    assert prof.trace.launch[prof.trace.on_device].tolist() == [0]
    gpu.settings(lost_launches=2)
    with recorded() as prof, gpu.on():
        for _ in range(6):
            ones.add(1)
    launch = prof.trace.launch[prof.trace.on_device]
    assert (launch < 0).sum() == 3
    assert (prof.trace.launcher[prof.trace.on_device] < 0).sum() == 3


def test_kernels_whose_records_were_dropped_are_told(gpu: SimulatedDevice) -> None:
    gpu.settings(lost_works=3)
    with recorded() as prof:
        for _ in range(9):
            gpu.launch(Work("kernel"))
    assert prof.trace.on_device.sum() == 6
    assert prof.trace.notes == ("3 kernels are missing: Kineto dropped their records; record less at a time",)


def test_a_kernel_that_ends_after_the_recording_is_whole(gpu: SimulatedDevice) -> None:
    gpu.settings(late_ns=50_000_000_000)
    with recorded() as prof:
        gpu.launch(Work("late", 3_000))
    assert prof.trace.duration_ns[prof.trace.on_device].tolist() == [3_000]


def test_the_gpu_alone_has_no_ops_but_their_lines(gpu: SimulatedDevice) -> None:
    gpu.plan("aten::add", Work("sim_add"))
    ones = torch.ones(2)
    with mtp.profile(hook="native", activities=["cuda"], with_stack=True) as prof, gpu.on():
        ones.add(1)
    trace = prof.trace
    assert sorted(set(trace.kind.tolist())) == [RUNTIME, KERNEL]
    assert trace.stack[trace.on_device].tolist() != [-1]


def test_the_cpu_alone_asks_kineto_for_nothing(gpu: SimulatedDevice) -> None:
    gpu.plan("aten::add", Work("sim_add"))
    before = gpu.asked_for()
    with mtp.profile(hook="native", activities=["cpu"]) as prof, gpu.on():
        torch.ones(2).add(1)
    assert not prof.trace.on_device.any()
    assert prof.trace.launcher is None
    assert gpu.asked_for() == before


def test_auto_takes_native_for_devices_with_all_flags(gpu: SimulatedDevice) -> None:
    plan_training(gpu)
    with mtp.profile() as prof:
        train(gpu, 2)
    assert prof.trace.hooks == ("native",)
    assert (prof.trace.kind == KERNEL).any()


def test_what_is_launched_while_devices_are_off_is_left_out(gpu: SimulatedDevice) -> None:
    gpu.plan("aten::add", Work("sim_add"))
    ones = torch.ones(2)
    with recorded() as prof, gpu.on():
        ones.add(1)
        prof.toggle_collection_dynamic(False, [mtp.ProfilerActivity.CUDA])
        ones.add(1)
        ones.add(1)
        prof.toggle_collection_dynamic(True, [mtp.ProfilerActivity.CUDA])
        ones.add(1)
    trace = prof.trace
    assert names(trace, trace.on_device) == ["sim_add"] * 2
    assert (trace.kind == RUNTIME).sum() == 2
    assert names(trace, trace.kind == OP).count("aten::add") == 4


def test_each_window_of_a_schedule_has_its_own_kernels(gpu: SimulatedDevice) -> None:
    gpu.plan("aten::add", Work("sim_add"))
    found: list[int] = []
    ones = torch.ones(2)
    plan = mtp.schedule(wait=1, warmup=1, active=2, repeat=2)

    def ready(prof: mtp.profile) -> None:
        found.append(int((prof.trace.kind == KERNEL).sum()))

    with recorded(schedule=plan, on_trace_ready=ready) as prof, gpu.on():
        for number in range(9):
            for _ in range(number):
                ones.add(1)
            prof.step()
    assert found == [2 + 3, 6 + 7]


def test_at_the_limit_of_events_devices_end_with_the_ops(gpu: SimulatedDevice) -> None:
    gpu.plan("aten::add", Work("sim_add"))
    ones = torch.ones(2)
    prof = recorded(max_events=300)
    prof.start()
    with gpu.on():
        for _ in range(500):
            ones.add(1)
    with pytest.warns(mtp.MtprofWarning, match="max_events"):
        prof.stop()
    trace = prof.trace
    assert len(trace) <= 300
    assert trace.unrecorded
    assert trace.dropped > 0


def test_calls_and_kernels_beyond_the_limit_are_told_without_any_op(gpu: SimulatedDevice) -> None:
    prof = recorded(max_events=300)
    prof.start()
    gpu.launch(Work("kernel"), times=500)
    with pytest.warns(mtp.MtprofWarning, match="max_events=300 was reached"):
        prof.stop()
    trace = prof.trace
    (missing,) = trace.unrecorded
    assert len(trace) == 300
    assert trace.dropped == 700
    assert missing.began_ns > trace.start_ns.max()


def test_rows_of_devices_are_cut_where_memory_does_not_suffice_to_read_them(
    gpu: SimulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_recording, "bytes_before_a_kill", lambda: [0])
    monkeypatch.setattr(device_recording, "TAKEN_ANYWAY", 100 * device_recording._BYTES_TO_READ)
    prof = recorded()
    prof.start()
    gpu.launch(Work("kernel"), times=500)
    with pytest.warns(mtp.MtprofWarning, match="there was not enough memory"):
        prof.stop()
    assert len(prof.trace) == 100
    assert prof.trace.dropped == 900
