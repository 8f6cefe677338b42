"""Garbage collections of a recording."""

import _thread
import gc
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from traces import event, make_trace

import mtprof_nb as mtp
from mtprof_nb.capture.collector_watch import CollectorWatch, WatchedCollections, with_collections


@pytest.fixture(autouse=True)
def _no_other_collections() -> Iterator[None]:
    """Only the collections that a test asks for, and no callbacks of others, such as Hypothesis's."""
    was_enabled, others = gc.isenabled(), gc.callbacks.copy()
    gc.disable()
    gc.callbacks.clear()
    yield
    gc.callbacks[:] = others
    if was_enabled:
        gc.enable()


def _collected(*generations: int) -> WatchedCollections:
    watch = CollectorWatch()
    watch.start()
    for generation in generations:
        gc.collect(generation)
    return watch.stop()


def test_each_collection_has_its_time_thread_and_generation() -> None:
    before_ns = time.perf_counter_ns()
    found = _collected(0, 2)
    after_ns = time.perf_counter_ns()

    assert found.generation.tolist() == [0, 2]
    assert found.thread.tolist() == [threading.get_native_id()] * 2
    moments = [before_ns, *np.column_stack([found.start_ns, found.end_ns]).ravel().tolist(), after_ns]
    assert moments == sorted(moments)


def test_callbacks_of_others_stay_and_ours_go() -> None:
    calls: list[str] = []

    def other(phase: str, _: Any) -> None:
        calls.append(phase)

    gc.callbacks.append(other)
    _collected(0)

    assert gc.callbacks == [other]
    assert calls == ["start", "stop"]
    assert len(CollectorWatch().stop().start_ns) == 0


class _Finalized:
    """Garbage that calls a function in the middle of the collection that finds it."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.itself, self.call = self, call

    def __del__(self) -> None:
        self.call()


def test_a_collection_that_runs_at_the_beginning_or_at_the_end_is_left_out() -> None:
    watch = CollectorWatch()
    found: list[WatchedCollections] = []

    _Finalized(watch.start)
    gc.collect(2)
    gc.collect(1)
    _Finalized(lambda: found.append(watch.stop()))
    gc.collect(0)

    assert [one.generation.tolist() for one in found] == [[1]]
    assert (found[0].start_ns <= found[0].end_ns).all()


class _Interrupts:
    """A finalizer in C that asks for an interrupt, as a signal during a collection does."""

    __del__ = staticmethod(_thread.interrupt_main)


def test_an_interrupt_that_comes_during_a_collection_is_not_lost() -> None:
    cycle: Any = _Interrupts()
    cycle.itself = cycle
    del cycle
    watch = CollectorWatch()
    watch.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            gc.collect()
    finally:
        found = watch.stop()

    assert len(found.start_ns) == 1


def test_a_trace_has_the_collections_of_its_window() -> None:
    columns = ([100, 200, 300, 900], [110, 250, 330, 950], [1, 1, 9, 1], [0, 2, 1, 1])
    watched = WatchedCollections(*map(np.array, columns))
    trace = make_trace([event("aten::mm", 150, 800)], began_ns=100, ended_ns=800)

    found = with_collections(trace, watched, lambda ns: ns).collections

    assert found is not None
    assert found.start_ns.tolist() == [100, 200, 300]
    assert found.duration_ns.tolist() == [10, 50, 30]
    assert found.generation.tolist() == [0, 2, 1]
    assert found.track.tolist() == [0, 0, -1]
    started = with_collections(replace(trace, own_ns=101), watched, lambda ns: ns).collections
    assert started is not None
    assert started.start_ns.tolist() == [300]


def _fails() -> None:
    gc.collect(1)
    _ = 1 / 0


def test_nothing_is_left_after_a_recording_that_failed() -> None:
    pytest.importorskip("torch")
    prof = mtp.profile()

    with pytest.raises(ZeroDivisionError), prof:
        _fails()

    assert gc.callbacks == []
    assert prof.trace.collections is not None
    assert prof.trace.collections.generation.tolist() == [1]
