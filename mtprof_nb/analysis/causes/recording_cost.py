"""The time that recording itself took between ops, estimated gap by gap."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtprof_nb.analysis.causes.gaps import gaps_before, outermost_ops
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.bookkeeping import PYTHON_CALL_NS
from mtprof_nb.model.trace import PYTHON, Int64, Trace

#: A longer gap between two ops is other work than calling the next op.
LONGEST_GAP_NS = 100_000
#: Estimates are the same for all machines and programs. Measured on small ops, with few flags and many, an op took
#: these shares of the estimate: of hooks in Python 0.6 to 1.1, of the others 0.45 to 1.9.
_AT_LEAST_IN_PYTHON, _AT_LEAST = 0.6, 0.45
_AT_MOST = 1.9
#: Recording an op takes no longer than the gaps that this share of the ops does not exceed.
_SHORTEST = 0.25


class BetweenOps(NamedTuple):
    """The short gaps between the ops of each thread, in sum: all of them, and what recording took of them at least."""

    gaps_ns: int
    recording_ns: int


@once_a_trace
def between_ops(trace: Trace) -> BetweenOps:
    """The short gaps between ops, with an estimate of the time for recording in them; 0 where it is not known."""
    gaps = gaps_before(trace)
    rows = outermost_ops(trace)
    rows = rows[(gaps[rows] > 0) & (gaps[rows] < LONGEST_GAP_NS)]
    short = gaps[rows]
    if not len(rows) or trace.overhead_ns < 0:
        return BetweenOps(int(short.sum()), 0)
    share = _AT_LEAST_IN_PYTHON if trace.between_ops_ns else _AT_LEAST
    of_op = min(int(share * _of_event(trace)), int(np.quantile(short, _SHORTEST)))
    recording = of_op + PYTHON_CALL_NS * _calls_between(trace, rows, short)
    return BetweenOps(int(short.sum()), int(np.minimum(recording, short).sum()))


def most_between_ops_ns(trace: Trace, rows: Int64) -> int:
    """The time for recording in the gaps before `rows`, outermost ops, at most: 0 where it is not known.

    Recording what ops call takes time inside of them, and not between them.
    """
    if trace.overhead_ns < 0:
        return 0
    calls = _calls_between(trace, rows, gaps_before(trace)[rows])
    return int(_AT_MOST * (_of_event(trace) * len(rows) + PYTHON_CALL_NS * int(calls.sum())))


def _of_event(trace: Trace) -> int:
    """The estimated time to record an event that is no Python call."""
    calls = int(np.count_nonzero(trace.kind == PYTHON))
    return max(trace.overhead_ns - trace.own_ns - calls * PYTHON_CALL_NS, 0) // max(len(trace) - calls, 1)


def _calls_between(trace: Trace, rows: Int64, gaps: Int64) -> Int64:
    """The number of recorded Python calls that began in the gap before each of `rows`."""
    found = np.zeros(len(rows), np.int64)
    is_call = trace.kind == PYTHON
    for track in set(trace.track[rows].tolist()):
        begun = trace.start_ns[is_call & (trace.track == track)]
        own = trace.track[rows] == track
        ends = trace.start_ns[rows[own]]
        found[own] = np.searchsorted(begun, ends) - np.searchsorted(begun, ends - gaps[own])
    return found
