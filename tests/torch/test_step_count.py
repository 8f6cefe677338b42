"""torch's own count of steps, beside ours: the expectations hold for torch's profiler too."""

import subprocess
import sys

import pytest
import torch
from torch.autograd.profiler import KinetoStepTracker

import mtprof_nb as mtp

PROFILES = pytest.mark.parametrize("profile", [torch.profiler.profile, mtp.profile], ids=["torch", "mtprof_nb"])


@pytest.fixture(autouse=True)
def from_zero(monkeypatch):
    # Kineto asks for its daemon once, when it is first used: not in this process.
    with mtp.profile():
        pass
    monkeypatch.setattr(KinetoStepTracker, "_current_step", 0)
    monkeypatch.setattr(KinetoStepTracker, "_step_dict", {})


@PROFILES
def test_steps_are_counted_where_a_daemon_follows_the_program(profile, monkeypatch):
    monkeypatch.setenv("KINETO_USE_DAEMON", "1")
    with profile() as prof:
        for number in range(3):
            assert KinetoStepTracker.current_step() == number
            prof.step()
        assert list(KinetoStepTracker._step_dict.values()) == [3]
    assert (KinetoStepTracker.current_step(), KinetoStepTracker._step_dict) == (3, {})
    with profile() as prof:
        prof.step()
    assert KinetoStepTracker.current_step() == 4


@PROFILES
def test_a_step_that_an_optimizer_counts_too_is_counted_once(profile, monkeypatch):
    monkeypatch.setenv("KINETO_USE_DAEMON", "1")
    KinetoStepTracker.increment_step("Optimizer")
    with profile() as prof:
        for _ in range(3):
            KinetoStepTracker.increment_step("Optimizer")
            prof.step()
    assert (KinetoStepTracker.current_step(), KinetoStepTracker._step_dict) == (4, {"Optimizer": 4})


@PROFILES
def test_without_a_daemon_nothing_is_counted(profile, monkeypatch):
    monkeypatch.delenv("KINETO_USE_DAEMON", raising=False)
    with profile() as prof:
        prof.step()
        assert list(KinetoStepTracker._step_dict.values()) == [0]
    assert (KinetoStepTracker.current_step(), KinetoStepTracker._step_dict) == (0, {})


def test_start_and_stop_leave_no_count_behind():
    prof = mtp.profile(schedule=mtp.schedule(wait=1, warmup=0, active=1))
    prof.start()
    assert KinetoStepTracker._step_dict == {"mtprof_nb": 0}
    prof.step()
    prof.step()
    prof.stop()
    assert KinetoStepTracker._step_dict == {}


@pytest.mark.parametrize("begins", ["before", "inside"])
def test_the_count_of_a_profiler_of_torchs_own_is_left_alone(begins, monkeypatch):
    monkeypatch.setenv("KINETO_USE_DAEMON", "1")
    # Torch's profiler counts from where it is made, also before it is started.
    theirs = torch.profiler.profile() if begins == "before" else None
    for _ in range(2):
        KinetoStepTracker.increment_step("ProfilerStep")
    with mtp.profile() as prof:
        theirs = theirs or torch.profiler.profile()
        prof.step()
    assert (KinetoStepTracker.current_step(), KinetoStepTracker._step_dict) == (3, {"ProfilerStep": 2})


def test_a_program_without_torch_counts_nothing():
    program = (
        "import sys, warnings; warnings.simplefilter('ignore'); import mtprof_nb as mtp\n"
        "with mtp.profile() as prof: prof.step()\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout == "False\n"
