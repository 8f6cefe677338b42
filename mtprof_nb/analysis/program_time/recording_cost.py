"""The time that recording itself took between ops, estimated gap by gap."""

from __future__ import annotations

import numpy as np

from mtprof_nb.analysis.groups import sums
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.analysis.program_time.gaps import LONGEST_GAP_NS, gaps_before, outermost_ops
from mtprof_nb.model.bookkeeping import PYTHON_CALL_NS
from mtprof_nb.model.trace import PYTHON, Bool, Int64, Trace

#: Estimates are the same for all machines and programs. Measured on small ops, with few flags and many, an op took
#: these shares of the estimate: of hooks in Python 0.6 to 1.1, of the others 0.45 to 1.9.
_AT_LEAST_IN_PYTHON, _AT_LEAST = 0.6, 0.45
_AT_MOST = 1.9
#: Recording an op takes no longer than the gaps that this share of the ops does not exceed.
_SHORTEST = 0.25


@once_a_trace
def between_ops(trace: Trace) -> tuple[int, int]:
    """The sum of the short gaps between ops, and how much of it recording took at least.

    The latter is 0 where no estimate is known.
    """
    gaps = gaps_before(trace)
    rows = outermost_ops(trace)
    rows = rows[(gaps[rows] > 0) & (gaps[rows] < LONGEST_GAP_NS)]
    short = gaps[rows]
    if not len(rows) or trace.overhead_ns < 0:
        return int(short.sum()), 0
    of_op = min(int(_at_least(trace) * _of_event(trace)), int(np.quantile(short, _SHORTEST)))
    recording = of_op + PYTHON_CALL_NS * _calls_between(trace, rows, short)
    return int(short.sum()), int(np.minimum(recording, short).sum())


def recording_ns(trace: Trace, chosen: Bool | None = None, *, at_least: bool = True) -> int:
    """The estimated time to record the chosen events, or all, on the thread with most of it; 0 where it is not known.

    `at_least`: the part of the estimate that is sure. The start of the profiler and its line marks, `own_ns`, do not
    count.
    """
    if trace.overhead_ns < 0 or not len(trace):
        return 0
    of_event = np.where(
        trace.kind == PYTHON, PYTHON_CALL_NS, int((_at_least(trace) if at_least else 1) * _of_event(trace))
    )
    rows = np.flatnonzero(~trace.on_device if chosen is None else chosen & ~trace.on_device)
    return int(sums(trace.track[rows], of_event[rows], len(trace.tracks)).max(initial=0))


def between_ops_ns(trace: Trace, rows: Int64) -> tuple[int, int]:
    """The time for recording in the gaps before `rows`, outermost ops, at least and at most; 0 where it is not known.

    Recording what ops call takes time inside of them, and not between them.
    """
    if trace.overhead_ns < 0:
        return 0, 0
    calls = _calls_between(trace, rows, gaps_before(trace)[rows])
    ns = _of_event(trace) * len(rows) + PYTHON_CALL_NS * int(calls.sum())
    return int(_at_least(trace) * ns), int(_AT_MOST * ns)


def _at_least(trace: Trace) -> float:
    return _AT_LEAST_IN_PYTHON if trace.between_ops_ns else _AT_LEAST


def _of_event(trace: Trace) -> int:
    """The estimated time to record an event that is no Python call."""
    calls = int(np.count_nonzero(trace.kind == PYTHON))
    return max(trace.overhead_ns - trace.own_ns - calls * PYTHON_CALL_NS, 0) // max(len(trace) - calls, 1)


def _calls_between(trace: Trace, rows: Int64, gaps: Int64) -> Int64:
    """The number of recorded Python calls that began in the gap before each of `rows`."""
    calls = np.zeros(len(rows), np.int64)
    is_call = trace.kind == PYTHON
    for track in set(trace.track[rows].tolist()):
        begun = trace.start_ns[is_call & (trace.track == track)]
        own = trace.track[rows] == track
        ends = trace.start_ns[rows[own]]
        calls[own] = np.searchsorted(begun, ends) - np.searchsorted(begun, ends - gaps[own])
    return calls
