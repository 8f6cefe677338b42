"""From launch to start: delays of kernels, and how many were launched and had not started."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mtprof_nb.model.trace import Int64, Trace


class LaunchDelays(NamedTuple):
    """Nanoseconds from the end of a launch to the start of its kernel; 0 for a kernel that started before that."""

    median_ns: int
    mean_ns: int
    max_ns: int


@dataclass(frozen=True, eq=False)
class Queue:
    """How many kernels, copies, sets and collectives had been launched and not started, from each of `time_ns` on."""

    time_ns: Int64
    length: Int64

    @property
    def max(self) -> int:
        """The longest that the queue was."""
        return int(self.length.max(initial=0))

    @property
    def mean(self) -> float:
        """The average over time, from the first launch to the last start."""
        lasted = np.diff(self.time_ns)
        whole = int(lasted.sum())
        return float((lasted * self.length[:-1]).sum() / whole) if whole else 0.0


def launch_delays(trace: Trace, work: Int64) -> LaunchDelays | None:
    """The delays of the events at positions `work`; None if no launch of them is known."""
    rows = _launched(trace, work)
    if trace.launch is None or not len(rows):
        return None
    delay = np.maximum(trace.start_ns[rows] - trace.end_ns[trace.launch[rows]], 0)
    return LaunchDelays(int(np.median(delay)), round(float(delay.mean())), int(delay.max()))


def launch_queue(trace: Trace, work: Int64) -> Queue:
    """The queue of the events at positions `work`, which are those of one device or of one stream."""
    rows = _launched(trace, work)
    started = trace.start_ns[rows]
    launched = np.minimum(started if trace.launch is None else trace.start_ns[trace.launch[rows]], started)
    time = np.concatenate([launched, started])
    change = np.repeat([1, -1], len(rows))
    # Of one moment, launches come first.
    order = np.lexsort((-change, time))
    return Queue(time[order], np.cumsum(change[order]))


def _launched(trace: Trace, work: Int64) -> Int64:
    return work[:0] if trace.launch is None else work[trace.launch[work] >= 0]
