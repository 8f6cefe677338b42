"""The mode of hook `dispatch`: the threads that have it, and that it leaves nothing behind."""

import gc
import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from dispatch_recording import names_of, new_hook, record
from recording import EVERY_FLAG
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from mtprof_nb.errors import MtprofWarning


def test_threads_started_meanwhile_are_recorded_on_lanes_of_their_own() -> None:
    def program() -> None:
        torch.ones(1)
        worker = threading.Thread(target=lambda: torch.zeros(1).exp(), name="worker")
        worker.start()
        worker.join()

    trace = record(program)
    lanes = [(trace.names[name], trace.tracks[lane].name) for name, lane in zip(trace.name, trace.track, strict=True)]
    assert lanes == [("aten::ones", "MainThread"), ("aten::zeros", "worker"), ("aten::exp", "worker")]


def test_work_given_to_an_older_thread_of_a_pool_is_recorded() -> None:
    with ThreadPoolExecutor(1, thread_name_prefix="pool") as pool:
        pool.submit(lambda: None).result()
        trace = record(lambda: pool.submit(torch.ones, 1).result())
        modes = pool.submit(torch._C._len_torch_dispatch_stack).result()

    assert [(trace.names[0], trace.tracks[0].name)] == [("aten::ones", "pool_0")]
    assert modes == 0


def test_a_thread_that_outlives_the_recording_goes_on_unrecorded() -> None:
    go_on, results = threading.Event(), []

    def work() -> None:
        torch.ones(1)
        running.set()
        go_on.wait()
        results.append(torch.ones(2).sum().item())

    running = threading.Event()
    thread = threading.Thread(target=work)

    def program() -> None:
        thread.start()
        running.wait()

    trace = record(program)
    go_on.set()
    thread.join()

    assert names_of(trace) == ["aten::ones"]
    assert results == [2.0]


def test_a_users_exception_passes_unchanged_and_the_op_is_recorded() -> None:
    hook = new_hook(**EVERY_FLAG)
    hook.prepare()
    hook.start()
    try:
        with pytest.raises(RuntimeError, match="cannot be multiplied") as caught:
            torch.rand(2, 3) @ torch.rand(2, 3)
    finally:
        trace = hook.stop()

    assert type(caught.value) is RuntimeError
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert names_of(trace)[-1] == "aten::mm"


def test_nothing_stays_after_a_start_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_mode: Any) -> None:
        raise RuntimeError("no more modes")

    original = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]
    hook = new_hook()
    with monkeypatch.context() as patch:
        patch.setattr(torch.utils._python_dispatch, "_push_mode", refused)
        with pytest.raises(RuntimeError, match="no more modes"):
            hook.start()
        assert len(hook.stop()) == 0

    assert threading.Thread._bootstrap_inner is original  # type: ignore[attr-defined]
    assert torch._C._len_torch_dispatch_stack() == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_is_left_without_the_mode_and_the_parent_goes_on() -> None:
    hook = new_hook()
    hook.start()
    child = os.fork()
    if not child:
        hook.abandon()
        os._exit(torch._C._len_torch_dispatch_stack())
    _, status = os.waitpid(child, 0)
    torch.ones(1)
    trace = hook.stop()

    assert os.waitstatus_to_exitcode(status) == 0
    assert names_of(trace) == ["aten::ones"]


class _Foreign(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def test_a_mode_of_the_users_that_outlives_the_recording_stays_in_force() -> None:
    hook, foreign = new_hook(), _Foreign()
    hook.start()
    with foreign:
        torch.ones(1)
        trace = hook.stop()
        assert torch._C._len_torch_dispatch_stack() == 1
        assert torch._C._get_dispatch_stack_at(0) is foreign

    assert names_of(trace) == ["aten::ones"]


def _on_another_thread(act: Callable[[], Any]) -> None:
    thread = threading.Thread(target=act)
    thread.start()
    thread.join()


def test_stopping_on_another_thread_leaves_that_threads_modes_alone() -> None:
    hook = new_hook()
    hook.start()
    torch.ones(1)
    found: list[Any] = []

    def stop() -> None:
        with _Foreign():
            found.append(hook.stop())
            found.append(torch._C._len_torch_dispatch_stack())

    with pytest.warns(MtprofWarning, match="stopped on another thread"):
        _on_another_thread(stop)
    torch.ones(1)
    hook.stop()

    assert (names_of(found[0]), found[1]) == (["aten::ones"], 1)


def test_a_mode_that_another_thread_could_not_remove_goes_with_the_next_recording() -> None:
    hook, foreign = new_hook(), _Foreign()
    hook.start()
    with pytest.warns(MtprofWarning, match="stop it on the thread that starts it"):
        _on_another_thread(hook.stop)
    assert torch._C._len_torch_dispatch_stack() == 1
    with foreign:
        trace = record(lambda: torch.zeros(1))
        assert torch._C._get_dispatch_stack_at(0) is foreign

    assert torch._C._len_torch_dispatch_stack() == 0
    assert names_of(trace) == ["aten::zeros"]


def test_a_recording_that_a_thread_left_to_others_when_it_ended_is_stopped_in_silence() -> None:
    hook = new_hook()

    def begin() -> None:
        hook.start()
        torch.ones(1)

    _on_another_thread(begin)

    assert names_of(hook.stop()) == ["aten::ones"]


def test_results_and_random_numbers_are_the_same_with_and_without_a_recording() -> None:
    def program() -> list[float]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2))
        loss = model(torch.rand(5, 3)).square().mean()
        loss.backward()
        return [loss.item(), *(float(parameter.grad.sum()) for parameter in model.parameters())]

    found: list[list[float]] = []
    record(lambda: found.append(program()), **EVERY_FLAG)
    assert found == [program()]


def test_no_tensor_is_kept_alive_by_the_recording() -> None:
    hook = new_hook(**EVERY_FLAG)
    hook.prepare()
    hook.start()
    model = nn.Linear(3, 2)
    a = torch.rand(2, 3)
    result = model(a)
    result.sum().backward()
    references = [weakref.ref(a), weakref.ref(result), weakref.ref(model.weight)]
    del a, result, model
    gc.collect()
    alive = [reference() for reference in references]
    hook.stop()

    assert alive == [None, None, None]
