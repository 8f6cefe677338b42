"""Events of one thread that overlap without nesting: a track of a viewer cannot show them."""

from __future__ import annotations

import numpy as np

from mtprof_nb.model.intervals import range_minima
from mtprof_nb.model.trace import PYTHON, SCOPE, STEP_PREFIX, Bool, Int64, Trace


def crossing_scopes(trace: Trace) -> Bool:
    """Scopes that cross another scope on the track of their thread, as those of interleaved coroutines do.

    Of a step and a scope that cross, this is the scope alone.
    """
    scopes = (trace.kind == SCOPE) & ~trace.is_async
    steps = scopes & trace.where_name(lambda name: name.startswith(STEP_PREFIX))
    return _crossed_by_scopes(trace, scopes & ~steps, scopes) | _crossed_by_scopes(trace, steps, steps)


def crossing_calls(trace: Trace, scopes: Bool) -> Bool:
    """Python calls that cross one of `scopes`: calls that open or close a scope end inside it, or begin there."""
    return _crossed_by_scopes(trace, trace.kind == PYTHON, scopes)


def _crossed_by_scopes(trace: Trace, asked: Bool, scopes: Bool) -> Bool:
    crossing = np.zeros(len(trace), np.bool_)
    if not asked.any():
        return crossing
    for thread in np.unique(trace.track[scopes]).tolist():
        here = trace.track == thread
        rows, around = np.flatnonzero(asked & here), np.flatnonzero(scopes & here)
        edges = trace.start_ns[around], trace.end_ns[around]
        crossing[rows] = crosses(trace.start_ns[rows], trace.end_ns[rows], *edges)
    return crossing


def crosses(starts: Int64, ends: Int64, other_starts: Int64, other_ends: Int64) -> Bool:
    """Whether each interval contains exactly one end of some other interval."""
    times = np.concatenate([other_starts, other_ends])
    order = np.argsort(times, kind="stable")
    times, second_ends = times[order], np.concatenate([other_ends, other_starts])[order]
    first, last = np.searchsorted(times, starts, "right"), np.searchsorted(times, ends, "left")
    earliest, latest = range_minima(second_ends, first, last), -range_minima(-second_ends, first, last)
    return (earliest < starts) | (latest > ends)
