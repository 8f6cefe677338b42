"""A thread that sleeps while a recording runs, as several of a notebook's kernel do, has frames but no ops."""

from __future__ import annotations

import threading

import torch

from mtprof_nb import profile


def test_a_thread_that_sleeps_throughout_is_left_out_of_the_stacks() -> None:
    asleep, wake = threading.Event(), threading.Event()

    def sleep() -> None:
        asleep.set()
        wake.wait()

    sleeper = threading.Thread(target=sleep)
    sleeper.start()
    asleep.wait()
    try:
        with profile(with_stack=True, with_modules=True) as prof:
            torch.ones(3).add(1)
    finally:
        wake.set()
        sleeper.join()

    (op,) = [event for event in prof.events() if event.name == "aten::add"]
    assert op.stack[0].endswith(":test_a_thread_that_sleeps_throughout_is_left_out_of_the_stacks")
    assert {event.thread_id for event in prof.events()} == {threading.get_native_id()}
