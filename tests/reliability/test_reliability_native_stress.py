"""Sixteen threads run ops, lose code, free one another's tensors and end, while recordings come, are read and go."""

import queue
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import pytest
from recording import NATIVE
from reliability_cases import assert_next_profile_is_complete

import mtprof_nb as mtp
from mtprof_nb.analysis.nesting import nesting
from mtprof_nb.model.trace import Recorded

pytest.importorskip("torch")
import torch

#: A function that is made anew each time, and is gone after its call.
_CODE = "def made(x):\n" + "    x = x + 1\n" * 3 + "    return x"
_FLAGS = [flag.name for flag in fields(Recorded)]


def _one_round(number: int, others: "queue.Queue[Any]") -> None:
    namespace: dict[str, Any] = {}
    exec(compile(_CODE, f"<round {number}>", "exec"), namespace)
    w = torch.ones(8, 8, requires_grad=True)
    with mtp.record_function(f"round {number % 50}"):
        namespace["made"](w).sum().backward()
    others.put(torch.ones(16))
    if others.qsize() > 64:
        others.get()  # of any thread


@contextmanager
def _busy_threads(count: int) -> Iterator[None]:
    """So many threads run; each ends after some rounds, and another one takes its place."""
    is_over = threading.Event()
    others: queue.Queue[Any] = queue.Queue()

    def run_rounds() -> None:
        for number in range(random.randrange(1, 40)):
            if not is_over.is_set():
                _one_round(number, others)

    def keep_running() -> None:
        while not is_over.is_set():
            thread = threading.Thread(target=run_rounds)
            thread.start()
            thread.join()

    keepers = [threading.Thread(target=keep_running) for _ in range(count)]
    for keeper in keepers:
        keeper.start()
    try:
        yield
    finally:
        is_over.set()
        for keeper in keepers:
            keeper.join()


def _stop(prof: mtp.profile, *, by_another_thread: bool) -> None:
    stopper = threading.Thread(target=prof.stop)
    if by_another_thread:
        stopper.start()
        stopper.join()
    else:
        prof.stop()


@pytest.mark.soak
@pytest.mark.parametrize("hook", [NATIVE])
@pytest.mark.filterwarnings("ignore::mtprof_nb.errors.MtprofWarning")
def test_recordings_with_any_flags_are_whole_while_threads_come_and_go(
    hook: str, rounds: Callable[[int, int], int]
) -> None:
    random.seed(0)
    x = torch.ones(4)
    with _busy_threads(16):
        for number in range(rounds(12, 600)):
            flags = {flag: random.random() < 0.6 for flag in _FLAGS}
            limit = 200 if number % 5 == 0 else 5_000_000
            prof = mtp.profile(hook=hook, max_events=limit, **flags)
            prof.start()
            for _ in range(random.randrange(50)):
                x.neg()
            prof.so_far()
            _stop(prof, by_another_thread=number % 4 == 0)
            trace = prof.trace
            assert len(trace) <= limit
            assert (trace.duration_ns >= 0).all()
            assert (nesting(trace).parent < len(trace)).all()
    assert_next_profile_is_complete(hook=hook)
