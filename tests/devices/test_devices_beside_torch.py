"""Devices of hook `native` beside torch's own profiler, of which there may be one more, before, inside or around."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulated_device import SimulatedDevice, Work
from test_recorded_devices import names, plan_training, recorded, train

import mtprof_nb as mtp
from mtprof_nb.capture.clock import Clock
from mtprof_nb.model.trace import KERNEL, OP

torch = pytest.importorskip("torch")
from torch.profiler import ProfilerActivity, profile  # noqa: E402

BOTH = [ProfilerActivity.CPU, ProfilerActivity.CUDA]


def kernels_of_torch(prof: Any) -> list[str]:
    return [event.name for event in prof.events() if event.device_type == torch.autograd.DeviceType.CUDA]


def add(gpu: SimulatedDevice, times: int) -> None:
    ones = torch.ones(2)
    with gpu.on():
        for _ in range(times):
            ones.add(1)


def test_a_torch_profiler_inside_is_whole_and_its_time_is_missing_in_ours(gpu: SimulatedDevice) -> None:
    gpu.plan("aten::add", Work("sim_add"))
    with recorded() as prof:
        add(gpu, 2)
        with profile(activities=BOTH) as theirs:
            add(gpu, 3)
        add(gpu, 4)
    assert kernels_of_torch(theirs) == ["sim_add"] * 3
    trace = prof.trace
    assert names(trace, trace.on_device) == ["sim_add"] * 6
    assert names(trace, trace.launcher[trace.on_device]) == ["aten::add"] * 6
    assert names(trace, trace.kind == OP).count("aten::add") == 9
    (note,) = trace.notes
    assert note.startswith("devices are missing for")


def test_a_torch_profiler_around_is_whole_and_ours_has_no_devices(gpu: SimulatedDevice) -> None:
    gpu.plan("aten::add", Work("sim_add"))
    with profile(activities=BOTH) as theirs:
        with recorded() as prof:
            add(gpu, 2)
        add(gpu, 1)
    assert kernels_of_torch(theirs) == ["sim_add"] * 3
    assert not prof.trace.on_device.any()
    assert names(prof.trace, prof.trace.kind == OP).count("aten::add") == 2
    (note,) = prof.trace.notes
    assert note.startswith("devices are not recorded: another profiler")


def test_a_torch_profiler_that_ends_inside_leaves_devices_to_ours(gpu: SimulatedDevice) -> None:
    gpu.plan("aten::add", Work("sim_add"))
    theirs = profile(activities=BOTH)
    theirs.start()
    with recorded() as prof:
        add(gpu, 2)
        theirs.stop()
        add(gpu, 3)
    assert kernels_of_torch(theirs) == ["sim_add"] * 2
    assert names(prof.trace, prof.trace.on_device) == ["sim_add"] * 3


def test_a_torch_profiler_that_outlives_ours_is_whole(gpu: SimulatedDevice) -> None:
    gpu.plan("aten::add", Work("sim_add"))
    theirs = profile(activities=BOTH)
    with recorded() as prof:
        add(gpu, 2)
        theirs.start()
        add(gpu, 3)
    add(gpu, 1)
    theirs.stop()
    assert kernels_of_torch(theirs) == ["sim_add"] * 4
    assert names(prof.trace, prof.trace.on_device) == ["sim_add"] * 2


def test_one_before_and_one_after_disturb_nothing(gpu: SimulatedDevice) -> None:
    gpu.plan("aten::add", Work("sim_add"))
    for _ in range(2):
        with profile(activities=BOTH) as theirs:
            add(gpu, 1)
        assert kernels_of_torch(theirs) == ["sim_add"]
        with recorded() as prof:
            add(gpu, 2)
        assert names(prof.trace, prof.trace.on_device) == ["sim_add"] * 2
        assert prof.trace.notes == ()


def test_kineto_that_somebody_else_ended_becomes_a_note(gpu: SimulatedDevice) -> None:
    gpu.plan("aten::add", Work("sim_add"))
    # As C++ code would start it: past the functions of torch that are watched.
    from torch._C import _autograd, _profiler

    config = _profiler.ProfilerConfig(
        _profiler.ProfilerState.KINETO, False, False, False, False, False, _profiler._ExperimentalConfig(), ""
    )
    with recorded() as prof:
        add(gpu, 2)
        _autograd._prepare_profiler(config, set(BOTH))
        _autograd._enable_profiler(config, set(BOTH))
        add(gpu, 3)
        _autograd._disable_profiler()
    assert not prof.trace.on_device.any()
    assert names(prof.trace, prof.trace.kind == OP).count("aten::add") == 5
    assert prof.trace.notes == (
        "what devices did is missing in part: somebody else has ended Kineto's recording meanwhile",
    )
    with recorded() as prof:
        add(gpu, 1)
    assert names(prof.trace, prof.trace.on_device) == ["sim_add"]


def test_hook_kineto_after_and_before_is_as_ever(gpu: SimulatedDevice) -> None:
    gpu.plan("aten::add", Work("sim_add"))
    gpu.settings(raw_threads=False)
    for hook in ("kineto", "native", "kineto"):
        with recorded(hook) as prof:
            add(gpu, 2)
        assert names(prof.trace, prof.trace.on_device) == ["sim_add"] * 2


def rows_of(averages: Any) -> dict[Any, Any]:
    """Calls and device times of each row, by name and kind of device."""
    return {
        (row.key, str(row.device_type).rpartition(".")[2] == "CPU", bool(row.is_user_annotation)): (
            row.count,
            round(row.device_time_total, 6),
            round(row.self_device_time_total, 6),
        )
        for row in averages
    }


def _torchs(gpu: SimulatedDevice, run: Callable[[], None]) -> Any:
    with profile(activities=BOTH) as theirs:
        run()
    return theirs.key_averages()


def test_averages_equal_torchs_of_a_run_with_the_same_kernels(gpu: SimulatedDevice) -> None:
    plan_training(gpu)
    gpu.settings(raw_threads=False)

    def run() -> None:
        with torch.profiler.record_function("training"):
            train(gpu, 3)

    run()
    theirs = rows_of(_torchs(gpu, run))
    with recorded() as prof:
        run()
    ours = rows_of(prof.key_averages())
    # Scopes on devices last from their first kernel to their last, which depends on the host.
    on_devices = {key for key in theirs if key[2]}
    assert {key: value for key, value in ours.items() if key not in on_devices} == {
        key: value for key, value in theirs.items() if key not in on_devices
    }
    assert {key for key in ours if key[2]} == on_devices


def test_device_time_of_phases_equals_that_of_hook_kineto(
    gpu: SimulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A wall clock that is corrected meanwhile stretches the times of hook `kineto`, and rounds them.
    ahead = Clock().wall_ahead_ns()
    monkeypatch.setattr(Clock, "wall_ahead_ns", lambda clock: ahead)
    plan_training(gpu)
    gpu.settings(raw_threads=False)
    times, kinds, lines = [], [], []
    for hook in ("kineto", "native"):
        with recorded(hook, with_stack=True, record_shapes=True, profile_memory=True) as prof:
            train(gpu, 3)
        rows = [row for row in prof.lines() if row.device_ns]
        phases = ((row.device_forward_ns, row.device_backward_ns, row.device_optimizer_ns) for row in rows)
        times.append([sum(column) for column in zip(*phases, strict=True)])
        kernels = np.flatnonzero(prof.trace.kind == KERNEL)
        kinds.append(Counter((*names(prof.trace, [row]), int(prof.trace.phase[row])) for row in kernels.tolist()))
        lines.append(len(rows))
    assert times[0] == times[1]
    assert kinds[0] == kinds[1]
    # Hook `kineto` knows the line of the function alone.
    assert lines == [1, 4]


def test_an_error_and_an_interrupt_in_the_block_leave_whole_recordings(gpu: SimulatedDevice) -> None:
    gpu.plan("aten::add", Work("sim_add"))

    def fail(prof: mtp.profile, error: type[BaseException]) -> None:
        with prof:
            add(gpu, 2)
            if error is KeyboardInterrupt:
                os.kill(os.getpid(), signal.SIGINT)
            raise error

    for error in (ValueError, KeyboardInterrupt):
        prof = recorded()
        with pytest.raises(error):
            fail(prof, error)
        assert names(prof.trace, prof.trace.on_device) == ["sim_add"] * 2


_FORK = """
import os, sys
import torch
from simulated_device import device, Work
import mtprof_nb as mtp
gpu = device()
both = {torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA}
torch.profiler.supported_activities = lambda: both
gpu.plan("aten::add", Work("sim_add"))
ones = torch.ones(2)

def add():
    with gpu.on():
        ones.add(1)

with mtp.profile(hook="native", activities=["cpu", "cuda"]) as prof:
    add()
    child = os.fork()
    if child == 0:
        add()
        with mtp.profile(hook="native", activities=["cpu", "cuda"]) as own:
            add()
            add()
        os._exit(int(own.trace.on_device.sum()))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    add()
assert prof.trace.on_device.sum() == 2, prof.trace.on_device.sum()
assert not prof.trace.notes
prof = mtp.profile(hook="native", activities=["cpu", "cuda"])
prof.start()
add()
print("whole")
"""


def test_a_fork_and_the_end_of_the_process_while_recording_are_survived(gpu: SimulatedDevice, tmp_path: Path) -> None:
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), str(Path(__file__).parents[1])])
    }
    done = subprocess.run(
        [sys.executable, "-c", _FORK], capture_output=True, text=True, env=environment, cwd=tmp_path, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "whole\n", "")


def test_a_recording_that_was_only_prepared_gives_kineto_back(gpu: SimulatedDevice) -> None:
    gpu.plan("aten::add", Work("sim_add"))
    plan = mtp.schedule(wait=0, warmup=3, active=1)
    with recorded(schedule=plan) as prof:
        add(gpu, 1)
        prof.step()
    with profile(activities=BOTH) as theirs:
        add(gpu, 1)
    assert kernels_of_torch(theirs) == ["sim_add"]
