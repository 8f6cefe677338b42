"""Stacks of threads that start while a recording lasts."""

import threading
import time

import numpy as np
import pytest
from recording import StillClock

from mtprof_nb.capture.kineto.new_thread_stacks import ThreadStacks
from mtprof_nb.capture.samples.python_stacks import frames_of


def test_a_thread_with_the_id_of_one_that_has_ended_leaves_that_ones_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "get_native_id", lambda: 7)
    moments: list[int] = []

    def first() -> None:
        moments.append(time.perf_counter_ns())

    def second() -> None:
        moments.append(time.perf_counter_ns())

    stacks = ThreadStacks(StillClock())
    stacks.install()
    for work in (first, second):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    stacks.remove()

    found, _ = stacks.at(7, np.array(moments))
    assert [list(frames_of(entry))[-1].function for entry in found if entry is not None] == ["first", "second"]
