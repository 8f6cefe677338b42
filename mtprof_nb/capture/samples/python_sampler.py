"""Samples of Python stacks by a thread in Python, where the native recorder cannot take them."""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from mtprof_nb.building.interning import distinct_objects
from mtprof_nb.capture.native.native_sampler import NativeSampler
from mtprof_nb.capture.samples.python_stacks import StackEntry, Stacks, frames_of, is_of_user_thread
from mtprof_nb.capture.samples.sampled_stacks import PERIOD_NS, SampledStacks
from mtprof_nb.capture.samples.thread_names import running_threads
from mtprof_nb.model.records import LATER
from mtprof_nb.model.trace import StackInterner

#: While samples are taken: a thread that runs Python code keeps others waiting for this long, in seconds.
_SWITCH_INTERVAL = 0.001
#: A thread that computed for a smaller part of the time since its last sample was waiting.
_LEAST_BUSY = 0.2
_NOTE = (
    "Samples of Python code were taken without the native recorder, at the next call or loop after their moment: "
    "time in arithmetic, indexing and C code may be on a later line and function, and no error is known"
)


class PythonSampler:
    """Looks at all threads every few milliseconds, in a thread of its own.

    It has to wait for the GIL, for as long as the switch interval of the interpreter. That is lowered meanwhile.
    """

    def __init__(self) -> None:
        self._stacks = Stacks()
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mtprof sampler", daemon=True)
        self._process = os.getpid()
        #: The interval before, and the one that was set.
        self._intervals: tuple[float, float] | None = None
        #: For each sample: when it was due, when it was taken, native id, stack, and for how long the thread was awake.
        self._rows: list[tuple[int, int, int, StackEntry, int]] = []
        #: For the first sample of each thread that runs already: when it began, and for how long the thread was awake.
        self._before: dict[int, tuple[int, int]] = {}

    def start(self) -> None:
        """Look at the threads from now on."""
        began_ns = time.perf_counter_ns()
        self._before = {native_id: (began_ns, _awake_ns(native_id)) for native_id in running_threads()}
        self._thread.start()  # first of all that changes something: the system may start no thread
        before = sys.getswitchinterval()
        sys.setswitchinterval(min(before, _SWITCH_INTERVAL))
        self._intervals = before, sys.getswitchinterval()

    def stop(self) -> SampledStacks | None:
        """The samples; None where it was not started."""
        if self._intervals is None:
            return None
        self.abandon()
        return self._read()

    def abandon(self) -> None:
        """End it, also in a forked child, where its thread is gone."""
        intervals, self._intervals = self._intervals, None
        if intervals is None:
            return
        # One that the program has set meanwhile is the program's.
        if sys.getswitchinterval() == intervals[1]:
            sys.setswitchinterval(intervals[0])
        if os.getpid() == self._process:
            self._is_stopping.set()
            self._thread.join()

    def _run(self) -> None:
        due_ns = time.perf_counter_ns()
        while True:
            while due_ns <= time.perf_counter_ns():
                due_ns += int(PERIOD_NS * random.uniform(0.5, 1.5))  # noqa: S311 - no secret
            if self._is_stopping.wait((due_ns - time.perf_counter_ns()) / 1e9):
                return
            self._take(due_ns)

    def _take(self, due_ns: int) -> None:
        own, taken_ns = threading.get_ident(), time.perf_counter_ns()
        native_ids = {thread.ident: thread.native_id for thread in threading.enumerate()}
        for ident, frame in sys._current_frames().items():
            native_id = native_ids.get(ident)
            if ident != own and native_id is not None:
                stack = self._stacks.capture(frame)
                self._rows.append((due_ns, taken_ns, native_id, stack, _awake_ns(native_id)))

    def _read(self) -> SampledStacks:
        asked, taken, thread, entries, awake = zip(*self._rows, strict=True) if self._rows else ((),) * 5
        interner = StackInterner()
        position, once = distinct_objects(entries)
        nodes = np.array([interner.stack(frames_of(entry)) for entry in once], np.int32)
        of_user = np.array([is_of_user_thread(entry) for entry in once], np.bool_)
        threads, times, awake_ns = (np.array(column, np.int64) for column in (thread, taken, awake))
        return SampledStacks(
            asked_ns=np.array(asked, np.int64),
            taken_ns=times,
            thread=threads,
            stack=nodes[position],
            is_waiting=_waited(threads, times, awake_ns, self._before),
            awake_ns=awake_ns,
            computed_ns=np.full(len(threads), -1, np.int64),
            is_of_user=of_user[position],
            certainty=np.full(len(threads), LATER, np.int8),
            tree=interner.tree(),
            notes=(_NOTE,) if self._rows else (),
        )


Sampler = NativeSampler | PythonSampler


def started_sampler() -> Sampler:
    """A sampler that runs: the native one if it is built and the system lets it, else one in Python."""
    native = NativeSampler.started()
    if native is not None:
        return native
    sampler = PythonSampler()
    sampler.start()
    return sampler


def _waited(
    thread: np.ndarray, taken_ns: np.ndarray, awake_ns: np.ndarray, before: Mapping[int, tuple[int, int]]
) -> np.ndarray:
    """Which samples are of threads that hardly ran since the sample before, or since `before`."""
    is_waiting = np.zeros(len(thread), np.bool_)
    for native_id in np.unique(thread).tolist():
        own = np.flatnonzero((thread == native_id) & (awake_ns >= 0))
        began_ns, awake = before.get(native_id, (0, -1))
        passed = np.diff(taken_ns[own], prepend=began_ns)
        ran = np.diff(awake_ns[own], prepend=awake)
        is_waiting[own] = ran < _LEAST_BUSY * passed
        is_waiting[own[:1]] &= awake >= 0
    return is_waiting


def _awake_ns(native_id: int) -> int:
    """For how long a thread of this process ran or waited for a processor, -1 where the system does not report it."""
    if not sys.platform.startswith("linux"):
        return -1
    try:
        ran_ns = time.clock_gettime_ns(~native_id << 3 | 6)  # Linux's number of the clock of a thread
        waited = Path(f"/proc/self/task/{native_id}/schedstat").read_bytes().split()[1]
    except (OSError, IndexError):  # it has ended, or the system has no such file
        return -1
    return ran_ns + int(waited)
