"""Functions that note when they ran, and how a recording is held against them."""

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np

import mtprof_nb as mtp
from mtprof_nb.analysis.functions.thread_time import stack_time
from mtprof_nb.capture.clock import Clock

#: A module of the user: its functions note in `spans` from when to when they ran, by `time.perf_counter_ns`.
MODULE = """
import threading
import time
from contextlib import contextmanager

spans = []

@contextmanager
def noting(name):
    began_ns = time.perf_counter_ns()
    yield
    spans.append((name, threading.get_native_id(), began_ns, time.perf_counter_ns()))

def busy_{name}(seconds):
    with noting("busy_{name}"):
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass

def asleep_{name}(seconds):
    with noting("asleep_{name}"):
        time.sleep(seconds)
"""


#: With fewer samples than that in one kind of function, nothing is known of it: the sampler had no processor.
_FEW = 10


def check(prof: mtp.profile, *modules: ModuleType) -> None:
    """Samples that were taken while a function ran are of that function, and the main thread's times are whole.

    How samples divide the time is tested on hand-made ones. A busy machine may suspend the sampler after it has read
    the clock and before it reads a stack. That is rare: a sampler that is wrong by a function is wrong in nearly all.
    """
    seen = list(_seen(prof, *modules))
    assert sum(one.is_right for one in seen) > 0.7 * len(seen) > 0
    for kind in ("busy", "asleep"):
        waits = [one.is_waiting for one in seen if one.function.startswith(kind)]
        assert len(waits) < _FEW or (kind == "asleep") in waits
    assert _time_of_main_thread(prof) == prof.summary().wall_ns - prof.summary().profiler_ns


class _Seen(NamedTuple):
    """A sample while a function ran: whether its stack has that function, and whether the thread was asleep."""

    function: str
    is_right: bool
    is_waiting: bool


def _seen(prof: mtp.profile, *modules: ModuleType) -> Iterator[_Seen]:
    trace, offset_ns = prof.trace, Clock().offset_ns
    samples, stacks = trace.samples, trace.stacks
    assert samples is not None
    assert stacks is not None
    for function, native_id, began_ns, ended_ns in (span for module in modules for span in module.spans):
        is_inside = (samples.time_ns >= began_ns + offset_ns) & (samples.taken_ns <= ended_ns + offset_ns)
        is_own = np.isin(samples.track, [each for each, one in enumerate(trace.tracks) if one.native_id == native_id])
        for row in np.flatnonzero(is_inside & is_own).tolist():
            names = {frame.function for frame in stacks.stack(int(samples.stack[row]))}
            yield _Seen(function, function in names, bool(samples.is_waiting[row]))


def _time_of_main_thread(prof: mtp.profile) -> int:
    """The time of the main thread by stacks."""
    spent = stack_time(prof.trace)
    assert spent is not None
    own = spent.track == track_of(prof, threading.main_thread())
    return int((spent.ops_ns + spent.python_ns + spent.waiting_ns)[own].sum())


def track_of(prof: mtp.profile, thread: threading.Thread) -> int:
    """The number of a thread's track: threads that other tests left behind may have tracks too."""
    return [track.native_id for track in prof.trace.tracks].index(thread.native_id)


def until_asleep(*threads: threading.Thread) -> None:
    """Return when each of the threads is inside `wait` and the system has put it to sleep."""
    while not all(map(_is_asleep, threads)):
        time.sleep(0.001)


def _is_asleep(thread: threading.Thread) -> bool:
    frame, states = sys._current_frames()[thread.ident or 0], Path(f"/proc/self/task/{thread.native_id}/stat")
    state = states.read_text().rpartition(") ")[2][0] if states.exists() else "S"
    return frame.f_code.co_name == "wait" and state == "S"
