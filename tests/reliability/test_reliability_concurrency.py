"""Threads, processes, and code that outlives the recording it began in."""

import multiprocessing
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from recording import HOOKS
from reliability_cases import IDS, RECORDINGS, assert_next_profile_is_complete, names, nothing_left

import mtprof_nb as mtp

torch = pytest.importorskip("torch")
THREADS = 16


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore:threads :mtprof_nb.errors.MtprofWarning")
@pytest.mark.parametrize("flags", [{}, {"with_stack": True}], ids=["plain", "stacks"])
@HOOKS
def test_sessions_start_and_stop_while_16_threads_run_ops(
    hook: str, flags: dict[str, bool], rounds: Callable[[int, int], int]
) -> None:
    ended = threading.Event()
    failures: list[BaseException] = []

    def run_ops() -> None:
        x = torch.ones(4, 4)
        try:
            while not ended.is_set():
                with mtp.record_function("of a thread"):
                    y = torch.mm(x, x)
                if y[0, 0].item() != 4.0:
                    raise ArithmeticError(y)
                ended.wait(0.0005)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run_ops) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(rounds(20, 500)):
            with mtp.profile(hook=hook, **flags) as prof, mtp.record_function("main"):
                torch.sin(torch.ones(2))
            found = names(prof)
            assert (found.count("main"), found.count("aten::sin")) == (1, 1)
            assert (prof.trace.duration_ns >= 0).all()
            assert (np.diff(prof.trace.start_ns) >= 0).all()
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert not failures
    assert_next_profile_is_complete(hook=hook, **flags)


@pytest.mark.parametrize("recording", RECORDINGS, ids=IDS)
def test_a_thread_that_outlives_the_recording_is_left_alone(recording: dict[str, Any]) -> None:
    if recording.get("profile_memory"):
        recording = {**recording, "profile_memory": False}
    begun, proceed, results = threading.Event(), threading.Event(), []

    def run() -> None:
        torch.sin(torch.ones(2))
        begun.set()
        proceed.wait()
        results.append(torch.cos(torch.ones(2)).shape)

    with nothing_left():
        with mtp.profile(**recording) as prof:
            thread = threading.Thread(target=run)
            thread.start()
            begun.wait()
        proceed.set()
        thread.join()
        assert results == [(2,)]
        # Without the recorder, other threads are not recorded.
        assert ("aten::sin" in names(prof), "aten::cos" in names(prof)) == (recording["hook"] == "native", False)
    assert_next_profile_is_complete(**recording)


def _profile_itself(queue: Any) -> None:
    with mtp.profile() as prof:
        torch.tan(torch.ones(2))
    queue.put(sorted(set(names(prof)) & {"aten::tan", "aten::sin"}))


@HOOKS
def test_a_spawned_child_profiles_itself_and_the_parents_trace_is_whole(hook: str) -> None:
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    with mtp.profile(hook=hook) as prof:
        torch.sin(torch.ones(2))
        child = context.Process(target=_profile_itself, args=(queue,))
        child.start()
        found = queue.get(timeout=300)
        child.join()
        torch.exp(torch.ones(2))
    assert (found, child.exitcode) == (["aten::tan"], 0)
    assert {"aten::sin", "aten::exp"} <= set(names(prof))
    assert "aten::tan" not in names(prof)


@pytest.mark.parametrize("recording", RECORDINGS, ids=IDS)
def test_generators_scopes_and_hooks_that_outlive_the_recording_go_on(recording: dict[str, Any]) -> None:
    def generate() -> Iterator[Any]:
        with mtp.record_function("generator"):
            yield torch.sin(torch.ones(2))
            yield torch.cos(torch.ones(2))

    seen = []
    leaf = torch.ones(2, requires_grad=True)
    with nothing_left():
        with mtp.profile(**recording) as prof:
            generator = generate()
            next(generator)
            scope = mtp.record_function("open")
            scope.__enter__()
            (leaf * 2).sum().backward()
            loss = (leaf * 3).sum()
            leaf.register_hook(seen.append)
        assert len(list(generator)) == 1
        scope.__exit__(None, None, None)
        loss.backward()
    assert [gradient.tolist() for gradient in seen] == [[3.0, 3.0]]
    found = names(prof)
    assert ("aten::sin" in found, "aten::cos" in found) == (True, False)
    assert {"generator", "open"} <= set(found)
    assert (prof.trace.duration_ns >= 0).all()
    assert_next_profile_is_complete(**recording)


@HOOKS
def test_a_scope_opened_in_one_recording_and_closed_in_the_next_is_in_neither_twice(hook: str) -> None:
    scope = mtp.record_function("across")
    with mtp.profile(hook=hook) as first:
        scope.__enter__()
        torch.sin(torch.ones(2))
    with mtp.profile(hook=hook) as second:
        scope.__exit__(None, None, None)
        torch.cos(torch.ones(2))
    assert names(first).count("across") == 1
    assert "across" not in names(second)
    assert names(second).count("aten::cos") == 1
