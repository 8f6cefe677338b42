"""Recordings at the limits of a process: no thread to be had, no call left, the wrong thread."""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from recording import HOOKS
from reliability_cases import assert_next_profile_is_complete, names, nothing_left

import mtprof_nb as mtp
from mtprof_nb.capture import window
from mtprof_nb.capture.interrupts import _MORE_CALLS, interrupts_held_back
from mtprof_nb.capture.samples.python_sampler import PythonSampler

torch = pytest.importorskip("torch")


def work() -> None:
    x = torch.ones(2, 2)
    torch.mm(x, x)


def no_thread(*_: Any) -> None:
    msg = "can't start new thread"
    raise RuntimeError(msg)


@pytest.mark.parametrize("failure", [MemoryError, RuntimeError])
def test_a_recording_goes_on_where_no_sampler_can_start(
    failure: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> None:
        raise failure

    monkeypatch.setattr(window, "started_sampler", fails)
    with pytest.warns(mtp.MtprofWarning, match="not sampled"), mtp.profile(hook="kineto", with_python=True) as prof:
        work()
    assert "aten::mm" in names(prof)
    assert prof.trace.samples is None


def test_a_sampler_whose_thread_does_not_start_leaves_the_switch_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    before = sys.getswitchinterval()
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    with pytest.raises(RuntimeError):
        PythonSampler().start()
    assert sys.getswitchinterval() == before


def test_a_recording_goes_on_where_no_thread_can_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    monkeypatch.setattr(window, "started_sampler", lambda: PythonSampler().start())
    with (
        nothing_left(),
        pytest.warns(mtp.MtprofWarning, match="no thread") as warned,
        mtp.profile(hook="native", profile_memory=True, with_python=True) as prof,
    ):
        work()
    problems = [str(one.message).partition(":")[0] for one in warned]
    assert problems == ["Python code is not sampled"]
    assert "aten::mm" in names(prof)


def down(levels: int, act: Callable[[], Any]) -> Any:
    return act() if levels == 0 else down(levels - 1, act)


def depth() -> int:
    frame, found = sys._getframe(), 0
    while (frame := frame.f_back) is not None:
        found += 1
    return found


@pytest.mark.filterwarnings("ignore::mtprof_nb.errors.MtprofWarning")  # of a profile that was lost without stop()
@HOOKS
def test_a_stop_at_the_limit_of_recursion_keeps_no_later_recording_from_starting(hook: str) -> None:
    recording = {"hook": hook, "profile_memory": True, "with_python": True}
    limit = sys.getrecursionlimit()
    failed = 0
    for margin in range(6, 70, 5):
        prof = mtp.profile(**recording)
        prof.start()
        try:
            down(limit - depth() - margin, prof.stop)
        except RecursionError:
            failed += 1
        del prof
        assert_next_profile_is_complete(**recording)
        assert sys.getrecursionlimit() == limit
    assert 0 < failed < 13


def test_an_end_may_call_beyond_the_limit_of_recursion_and_leaves_a_limit_that_was_set_inside() -> None:
    limit = sys.getrecursionlimit()
    with interrupts_held_back():
        assert down(limit - depth() + _MORE_CALLS // 2, sys.getrecursionlimit) == limit + _MORE_CALLS
    with interrupts_held_back():
        sys.setrecursionlimit(limit + 7)
    assert sys.getrecursionlimit() == limit + 7
    sys.setrecursionlimit(limit)


def test_a_stop_in_another_thread_is_refused_where_kineto_cannot_stop_there() -> None:
    refused = r"stopped in the thread that started it.*call stop\(\) in that thread, or use hook='native'"
    with nothing_left(), ThreadPoolExecutor(1) as other:
        prof = mtp.profile(hook="kineto", profile_memory=True)
        prof.start()
        work()
        with pytest.raises(mtp.SessionError, match=refused):
            other.submit(prof.stop).result()
        other.submit(prof.step).result()
        prof.stop()
    assert "aten::mm" in names(prof)
    assert prof.step_num == 1
    assert_next_profile_is_complete(hook="kineto", profile_memory=True)


@pytest.mark.filterwarnings("ignore:0 steps recorded:mtprof_nb.errors.MtprofWarning")
def test_a_step_in_another_thread_is_refused_where_it_ends_a_window() -> None:
    schedule = mtp.schedule(wait=0, warmup=0, active=1, repeat=1)
    with nothing_left(), ThreadPoolExecutor(1) as other:
        prof = mtp.profile(hook="kineto", profile_memory=True, schedule=schedule)
        prof.start()
        with pytest.raises(mtp.SessionError, match="stopped in the thread that started it"):
            other.submit(prof.step).result()
        prof.stop()


@pytest.mark.filterwarnings("ignore::mtprof_nb.errors.MtprofWarning")
def test_a_block_that_is_left_in_another_thread_leaves_nothing() -> None:
    prof = mtp.profile(hook="kineto", profile_memory=True)
    with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as second:
        first.submit(prof.__enter__).result()
        second.submit(prof.__exit__, None, None, None).result()
    assert mtp.active() is None


@pytest.mark.filterwarnings("ignore::mtprof_nb.errors.MtprofWarning")
def test_a_stop_at_the_limit_of_recursion_in_a_thread_keeps_no_later_recording_from_starting() -> None:
    limit = sys.getrecursionlimit()
    with ThreadPoolExecutor(1) as other:
        for margin in range(8, 40, 4):
            prof = mtp.profile(hook="native", with_python=True)
            prof.start()
            with suppress(RecursionError):
                other.submit(lambda prof=prof, margin=margin: down(limit - depth() - margin, prof.stop)).result()
            del prof
            assert_next_profile_is_complete(hook="native", with_python=True)


def test_a_program_with_the_highest_limit_of_recursion_is_recorded() -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(2**31 - 1)
    try:
        with nothing_left(), mtp.profile(hook="kineto") as prof:
            work()
        assert sys.getrecursionlimit() == 2**31 - 1
    finally:
        sys.setrecursionlimit(limit)
    assert "aten::mm" in names(prof)


@pytest.mark.filterwarnings("ignore:profile_memory. thread:mtprof_nb.errors.MtprofWarning")
def test_a_recording_whose_thread_has_ended_says_that_it_is_lost() -> None:
    prof = mtp.profile(hook="kineto", profile_memory=True)
    with nothing_left():
        with ThreadPoolExecutor(1) as gone:
            gone.submit(prof.start).result()
        with pytest.warns(mtp.MtprofWarning, match="is lost: the thread that started it has ended"):
            prof.stop()
    assert len(prof.trace) == 0
    assert_next_profile_is_complete(hook="kineto", profile_memory=True)
