"""The times of a real recording without what other programs on the machine took from it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mtprof_nb.model.trace import Columns, Int64, OutsideOps, Trace


def steady(trace: Trace) -> Trace:
    """`trace` in which pieces of time that are alike are as long as the shortest of them.

    A piece lies between two moments at which an event begins or ends. Pieces are alike that lie between alike events.
    """
    kinds = np.unique(_facts(trace), axis=1, return_inverse=True)[1].reshape(-1)
    moments = np.concatenate([[trace.began_ns], trace.start_ns, trace.end_ns, [trace.ended_ns]])
    what = np.concatenate([[-1], 2 * kinds, 2 * kinds + 1, [-2]])
    order = np.argsort(moments, kind="stable")
    moments, what = moments[order], what[order]
    alike = np.unique(np.stack([what[:-1], what[1:]]), axis=1, return_inverse=True)[1].reshape(-1)
    shortest = np.full(len(alike), np.iinfo(np.int64).max)
    np.minimum.at(shortest, alike, np.diff(moments))
    steady_moments = trace.began_ns + np.concatenate([[0], np.cumsum(shortest[alike])])
    return _at(trace, moments - trace.began_ns, steady_moments - trace.began_ns)


def _facts(trace: Trace) -> Int64:
    """Facts that alike events have in common, a column an event."""
    chosen = (trace.name, trace.track, trace.step, trace.shape, trace.stack)
    return np.stack([column.astype(np.int64) for column in chosen if column is not None])


def _at(trace: Trace, since_ns: Int64, steady_ns: Int64) -> Trace:
    """`trace` whose times since its beginning are those of `steady_ns` instead of `since_ns`."""

    def at(moments: Int64) -> Int64:
        found = np.interp(moments - trace.began_ns, since_ns, steady_ns)
        return trace.began_ns + np.rint(found).astype(np.int64)

    made: Columns = {"start_ns": at(trace.start_ns), "duration_ns": at(trace.end_ns) - at(trace.start_ns)}
    if (blocks := trace.allocations) is not None:
        made["allocations"] = replace(blocks, time_ns=at(blocks.time_ns))
    if (ran := trace.collections) is not None:
        start_ns, end_ns = at(ran.start_ns), at(ran.start_ns + ran.duration_ns)
        made["collections"] = replace(ran, start_ns=start_ns, duration_ns=end_ns - start_ns)
    if (seen := trace.samples) is not None:
        times = {"time_ns": at(seen.time_ns), "taken_ns": at(seen.taken_ns)}
        made["samples"] = replace(seen, **times, awake_ns=None, computed_ns=None)
    ends = at(np.array([moment for window in trace.windows for moment in window], np.int64)).reshape(-1, 2)
    starts = [(int(at(np.array(moment))), number) for moment, number in trace.step_starts]
    made |= {"windows": tuple(map(tuple, ends.tolist())), "step_starts": tuple(starts)}
    made |= _marks(trace, steady_ns[-1] / max(since_ns[-1], 1))
    return replace(trace, ended_ns=trace.began_ns + int(steady_ns[-1]), **made)


def _marks(trace: Trace, share: float) -> Columns:
    """The times of marked lines, each with its `share`, and the profiler's own time with theirs."""
    lines = {line: OutsideOps(*(int(ns * share) for ns in times)) for line, times in (trace.outside or {}).items()}
    saved_ns = sum(times.profiler_ns - lines[line].profiler_ns for line, times in (trace.outside or {}).items())
    known_ns = {name: getattr(trace, name) - saved_ns for name in ("own_ns", "overhead_ns")}
    return {"outside": lines if trace.outside is not None else None, **known_ns} if saved_ns else {}
