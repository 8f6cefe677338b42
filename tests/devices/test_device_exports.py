"""Recordings of hook `native` with devices in files, and over several windows."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulated_device import SimulatedDevice, Work
from test_recorded_devices import names, plan_training, recorded, train

import mtprof_nb as mtp
from mtprof_nb.model.trace import KERNEL, SYNC, Trace

torch = pytest.importorskip("torch")


def kernels(trace: Trace) -> list[tuple[Any, ...]]:
    """Of each kernel its name, time, stream, and the names of its op and call."""
    rows = np.flatnonzero(trace.kind == KERNEL)
    places = [trace.tracks[track].title for track in trace.track[rows].tolist()]
    times = trace.start_ns[rows].tolist(), trace.duration_ns[rows].tolist()
    owners = names(trace, trace.launcher[rows]), names(trace, trace.launch[rows])
    return list(zip(names(trace, rows), *times, places, *owners, strict=True))


@pytest.mark.parametrize("file", ["run.mtp", "run.json"])
def test_kernels_come_back_from_files_with_op_call_and_stream(gpu: SimulatedDevice, tmp_path: Path, file: str) -> None:
    plan_training(gpu)
    with recorded(with_stack=True, record_shapes=True) as prof:
        train(gpu, 2)
    save = prof.save if file.endswith("mtp") else prof.export_chrome_trace
    save(str(tmp_path / file))
    assert kernels(mtp.load(tmp_path / file).trace) == kernels(prof.trace) != []


def test_a_chrome_trace_links_each_kernel_with_its_launch(gpu: SimulatedDevice, tmp_path: Path) -> None:
    gpu.plan("aten::add", Work("sim_add", 2_000))
    with recorded() as prof, gpu.on():
        torch.ones(2).add(1)
    prof.export_chrome_trace(str(tmp_path / "run.json"))
    events = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))["traceEvents"]
    by_category = {event["cat"]: event for event in events if event.get("cat") in ("kernel", "cuda_runtime")}
    kernel, call = by_category["kernel"], by_category["cuda_runtime"]
    assert (kernel["name"], kernel["dur"], call["name"]) == ("sim_add", 2, "cudaLaunchKernel")
    assert kernel["args"]["correlation"] == call["args"]["correlation"]


def test_windows_that_are_kept_together_have_all_their_kernels(gpu: SimulatedDevice) -> None:
    gpu.plan("aten::add", Work("sim_add", 2_000))
    ones = torch.ones(2)
    with recorded(schedule=mtp.schedule(wait=1, active=1, repeat=2), acc_events=True) as prof, gpu.on():
        for number in range(4):
            for _ in range(number):
                ones.add(1)
            prof.step()
    (row,) = (row for row in prof.key_averages() if row.key == "sim_add")
    assert (row.count, row.self_device_time_total) == (1 + 3, 4 * 2)
    (row,) = (row for row in prof.key_averages() if row.key == "aten::add")
    assert (row.count, row.device_time_total) == (1 + 3, 4 * 2)


def test_records_of_waiting_are_no_work_of_the_device(gpu: SimulatedDevice) -> None:
    gpu.plan("aten::add", Work("sim_add", 2_000))
    with recorded() as prof, gpu.on():
        torch.ones(2).add(1)
        gpu.launch(Work("Stream Sync", 9_000, activity="cuda_sync"), call="cudaStreamSynchronize")
    trace = prof.trace
    (row,) = np.flatnonzero(trace.kind == SYNC)
    assert (names(trace, [row]), names(trace, [trace.launch[row]])) == (["Stream Sync"], ["cudaStreamSynchronize"])
    assert trace.notes == ()
    (device,) = prof.devices()
    assert device.busy_ns == 2_000
