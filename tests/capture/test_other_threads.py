"""Threads that are inside an op while Kineto comes and goes."""

import gc
import sys
import threading
import time
import warnings

import pytest

import mtprof_nb as mtp
from mtprof_nb.capture.kineto import busy_threads as other_threads
from mtprof_nb.capture.kineto.busy_threads import LeftOpen, Unfinished

OP, SCOPE = Unfinished(77, "aten::mm", is_scope=False), Unfinished(77, "epoch", is_scope=True)


@pytest.fixture
def where(monkeypatch):
    """Where threads are, by native id: the test's to change."""
    found = {77: (1, 10)}
    monkeypatch.setattr(other_threads, "positions", lambda: dict(found))
    monkeypatch.setattr(other_threads, "_MOST_S", 0)
    return found


def test_an_op_that_was_left_open_has_ended_once_its_thread_is_elsewhere(where):
    left_open = LeftOpen()
    left_open.note([OP], dict(where))
    assert not left_open.has_ended()
    where[77] = (1, 12)
    assert left_open.has_ended()


def test_a_scope_that_was_left_open_has_ended_for_sure_only_with_its_thread(where):
    left_open = LeftOpen()
    left_open.note([SCOPE, OP], dict(where))
    where[77] = (1, 12)
    assert not left_open.has_ended()
    del where[77]
    assert left_open.has_ended()


def test_what_the_profiling_thread_left_open_is_its_own_affair(where):
    left_open = LeftOpen()
    left_open.note([Unfinished(threading.get_native_id(), "mine", is_scope=True)], dict(where))
    assert left_open.has_ended()


@pytest.mark.usefixtures("kineto_alone")
def test_a_scope_of_torchs_on_another_thread_that_outlives_a_recording_keeps_the_next_one_to_its_own_thread():
    torch = pytest.importorskip("torch")
    opened, closing, closed = threading.Event(), threading.Event(), threading.Event()

    def work():
        with torch.profiler.record_function("epoch"):
            torch.sin(torch.ones(2))
            opened.set()
            closing.wait()
        torch.cos(torch.ones(2))
        closed.set()

    thread = threading.Thread(target=work)
    with mtp.profile() as first:
        thread.start()
        opened.wait()
    second = mtp.profile()
    second.start()
    torch.tan(torch.ones(2))
    closing.set()
    closed.wait()
    with pytest.warns(mtp.MtprofWarning, match="before the recording are not recorded: another thread"):
        second.stop()
    thread.join()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with mtp.profile() as third:
            other = threading.Thread(target=lambda: torch.exp(torch.ones(2)))
            other.start()
            other.join()

    names = [{event.name for event in one.events()} for one in (first, second, third)]
    assert {"epoch", "aten::sin"} <= names[0]
    assert "aten::tan" in names[1]
    assert not {"epoch", "aten::cos"} & names[1]
    assert "aten::exp" in names[2]


def test_scopes_of_ours_that_outlive_a_recording_are_never_told_of_its_end():
    torch = pytest.importorskip("torch")
    opened, closing = threading.Event(), threading.Event()

    def work():
        with mtp.record_function("epoch"):
            torch.sin(torch.ones(2))
            opened.set()
            closing.wait()

    thread = threading.Thread(target=work)
    with mtp.profile() as first:
        thread.start()
        opened.wait()
        time.sleep(0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with mtp.profile() as second:
            closing.set()
            thread.join()
    (epoch,) = (event for event in first.events() if event.name == "epoch")

    assert epoch.duration_ns >= 10_000_000
    assert "epoch" not in {event.name for event in second.events()}


def test_frames_of_threads_are_asked_for_while_nothing_is_collected(monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "_current_frames", lambda: seen.append(gc.isenabled()) or {})
    assert not other_threads.others_are_busy()
    assert (seen, gc.isenabled()) == ([False], True)
