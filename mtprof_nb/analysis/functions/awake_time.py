"""Time outside ops between the samples of a thread, divided between them into computing and waiting.

The system counts for how long a thread was awake. If a thread slept at one sample and computed at the next, the moment
between them is therefore known, however far apart they are. Where it is not known, each sample gets half.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mtprof_nb.model.trace import Bool, Int64, Samples

#: In an interval with a larger share of ops, the ops may have slept, and how long Python slept is unknown.
_MOST_OPS = 0.25
#: A smaller share of an interval may be due to the moments at which the two clocks were read.
_LEAST_SHARE = 0.05
#: A thread that slept at both samples, and computed for longer in between, ran code that no sample saw.
_UNSEEN_NS = 1_000_000
#: At most so many samples away, another sample may stand for it.
_NEAR = 25

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SplitTime:
    """For each sample its time in Python code and in waiting; for each interval the time in code that no sample saw."""

    python_ns: Int64
    waiting_ns: Int64
    unseen_ns: Int64


def split_time(samples: Samples, outside_ns: Int64, first_ns: Int64, in_ops_ns: Int64) -> SplitTime:
    """Divide the intervals around `samples`: before the first, between each two, and after the last.

    `outside_ns` is the time of each interval outside ops, `first_ns` how much of an inner one lies before its middle,
    `in_ops_ns` the time of the inner ones in ops.
    """
    inner = outside_ns[1:-1]
    awake, is_known = _awake(samples, inner, in_ops_ns)
    waits, share = samples.is_waiting, first_ns / np.maximum(inner, 1)
    both_wait = waits[:-1] & waits[1:]
    # Where it is not known, a thread slept for the time that its sleeping samples stand for.
    awake = np.where(is_known, awake, ~waits[:-1] * share * inner + ~waits[1:] * (1 - share) * inner)
    is_counted, computed_ns = _computed(samples)
    computed = np.minimum(awake, computed_ns - in_ops_ns)
    seen_near, nearest = _moved_to_nearest(np.where(is_known & both_wait & (computed > 0), computed, 0), ~waits)
    # The wait for a processor is that of a thread that wakes up: it is still where it slept.
    rest = np.where(is_counted, computed, awake) - seen_near
    unseen = np.where(is_known & both_wait & (rest > _UNSEEN_NS), rest, 0)
    python = _shared(awake - unseen - seen_near, share, ~waits) + nearest
    waiting = _shared(inner - awake, share, waits)
    ends = np.zeros(len(waits), np.int64)
    ends[0] += outside_ns[0]
    ends[-1] += outside_ns[-1]
    return _rounded(np.where(waits, 0, ends) + python, np.where(waits, ends, 0) + waiting, unseen, outside_ns)


def _moved_to_nearest(time: Float64, is_awake: Bool) -> tuple[Float64, Float64]:
    """How much of the time of each interval another sample of a thread that computes stands for; and by sample.

    On a busy machine, samples come when the program sleeps: what it computed in between is like what near samples saw.
    """
    rows, intervals = np.flatnonzero(is_awake), np.flatnonzero(time)
    moved, by_sample = np.zeros(len(time)), np.zeros(len(is_awake))
    if len(rows) and len(intervals):
        after = np.searchsorted(rows, intervals)
        before, behind = rows[np.maximum(after - 1, 0)], rows[np.minimum(after, len(rows) - 1)]
        away = np.abs(np.stack([before - intervals, behind - intervals - 1]))
        chosen = np.where(away[0] <= away[1], before, behind)
        is_near = away.min(axis=0) <= _NEAR
        moved[intervals[is_near]] = time[intervals[is_near]]
        np.add.at(by_sample, chosen[is_near], time[intervals[is_near]])
    return moved, by_sample


def _computed(samples: Samples) -> tuple[Bool, Int64]:
    """For each inner interval whether it is known how long the thread computed, and how long; else 0."""
    computed_ns = np.full(len(samples), -1, np.int64) if samples.computed_ns is None else samples.computed_ns
    is_known = (computed_ns[1:] >= 0) & (computed_ns[:-1] >= 0)
    return is_known, np.where(is_known, np.diff(computed_ns), 0)


def _awake(samples: Samples, outside_ns: Int64, in_ops_ns: Int64) -> tuple[Float64, Bool]:
    """For each inner interval the time that the thread computed outside ops, and whether that is known."""
    if samples.awake_ns is None:
        return np.zeros(len(outside_ns)), np.zeros(len(outside_ns), np.bool_)
    counted = samples.awake_ns >= 0
    is_known = counted[1:] & counted[:-1] & (in_ops_ns <= _MOST_OPS * (outside_ns + in_ops_ns))
    awake = np.diff(samples.awake_ns) - in_ops_ns
    share = np.clip(awake / np.maximum(outside_ns, 1), 0, 1)
    share = np.where(share < _LEAST_SHARE, 0, np.where(share > 1 - _LEAST_SHARE, 1, share))
    return share * outside_ns, is_known


def _shared(time: Float64, share: Float64, is_of_kind: Bool) -> Float64:
    """The time of one kind by sample: an interval's belongs to the sample of that kind, or to both by `share`."""
    first, second = is_of_kind[:-1], is_of_kind[1:]
    to_first = time * np.where(first == second, share, first)
    by_sample = np.zeros(len(is_of_kind))
    by_sample[:-1] += to_first
    by_sample[1:] += time - to_first
    return by_sample


def _rounded(python: Float64, waiting: Float64, unseen: Float64, outside_ns: Int64) -> SplitTime:
    """The times in whole nanoseconds that sum up to `outside_ns`."""
    parts = np.concatenate([python, waiting, unseen])
    ends = np.rint(np.cumsum(parts)).astype(np.int64)
    if len(ends):
        ends[-1] = outside_ns.sum()
    whole = np.diff(ends, prepend=np.int64(0))
    count = len(python)
    return SplitTime(whole[:count], whole[count : 2 * count], whole[2 * count :])
