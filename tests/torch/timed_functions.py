"""Functions that measure their own time, and how a recording is held against them."""

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import mtprof_nb as mtp
from mtprof_nb.analysis.functions.thread_time import stack_time

#: A module of the user: its functions note in `spent` how many seconds they took themselves.
MODULE = """
import time
from contextlib import contextmanager

spent, slept = {{}}, {{}}

@contextmanager
def noting(name):
    began = time.perf_counter()
    yield
    spent[name] = spent.get(name, 0) + time.perf_counter() - began

def busy_{name}(seconds):
    with noting("busy_{name}"):
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass

def asleep_{name}(seconds):
    with noting("asleep_{name}"):
        time.sleep(seconds)
    slept["asleep_{name}"] = slept.get("asleep_{name}", 0) + seconds
"""


def undisturbed(test: Callable[..., None]) -> Callable[..., None]:
    """Let a test record again, twice at most: other programs may take the processors during one recording."""

    @wraps(test)
    def repeated(*args: Any, **kwargs: Any) -> None:
        for _ in range(2):
            with suppress(AssertionError):
                return test(*args, **kwargs)
        return test(*args, **kwargs)

    return repeated


def check(prof: mtp.profile, *modules: ModuleType) -> None:
    """Each function's time is within 5 % or 5 ms of what it measured itself, and the threads' times are whole.

    On a busy machine the sampler does not run at times: as much as that is not known.
    """
    found = {row.function: row for row in prof.functions()}
    gaps = np.diff(np.unique(prof.trace.samples.time_ns)) / 1e9
    unknown = 0.005 + np.maximum(gaps - 0.003, 0).sum()
    for one in modules:
        for name, seconds in one.spent.items():
            row = found.get(name)
            if row is None:
                assert seconds < unknown, name
                continue
            assert row.total_ns / 1e9 == pytest.approx(seconds, rel=0.05, abs=unknown + (row.error_ns or 0) / 1e9), name
            # A thread that could run again, and that the system has not continued yet, is not asleep.
            assert row.waiting_ns / 1e9 > 0.3 * one.slept.get(name, 0) - unknown, name


def wall_share(prof: mtp.profile) -> float:
    """The time of the main thread by stacks over the wall time of the program."""
    summary, time = prof.summary(), stack_time(prof.trace)
    own = time.track == track_of(prof, threading.main_thread())
    return float((time.ops_ns + time.python_ns + time.waiting_ns)[own].sum() / (summary.wall_ns - summary.profiler_ns))


def track_of(prof: mtp.profile, thread: threading.Thread) -> int:
    """The number of a thread's track: threads that other tests left behind may have tracks too."""
    return [track.native_id for track in prof.trace.tracks].index(thread.native_id)
