"""The time of each thread, divided among Python stacks.

Ops are known exactly, and so is the time between them. Samples only divide that time: each sample outside ops stands
for the time around it, up to the middle between it and its neighbours. If stacks of ops were not recorded, samples
inside ops divide the time in ops in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mtprof_nb.analysis.costs import counted_ops, op_costs
from mtprof_nb.analysis.functions.awake_time import split_time
from mtprof_nb.analysis.functions.marked_lines import Outside, Program, program_of, without_marks
from mtprof_nb.analysis.groups import number_combinations, sums
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.intervals import by_thread, covered, covered_until, merged
from mtprof_nb.model.trace import Bool, Int8, Int32, Int64, Samples, Trace


@dataclass(frozen=True, eq=False)
class StackTime:
    """Time by stack, in rows: a node of `Trace.stacks` (-1: unknown), its thread, and the time of three kinds."""

    stack: Int32
    track: Int32
    ops_ns: Int64
    python_ns: Int64
    waiting_ns: Int64
    #: Number of the run that the row belongs to: samples of one thread and stack that follow each other.
    run: Int64
    #: True for rows that samples gave, rather than recorded ops.
    is_estimate: Bool
    #: How surely the thread was at this stack, as in `Samples`.
    certainty: Int8

    def __len__(self) -> int:
        return len(self.stack)

    @property
    def total_ns(self) -> Int64:
        return self.ops_ns + self.python_ns + self.waiting_ns


@dataclass(frozen=True)
class _Thread:
    """The samples of one thread, its ops as intervals that do not overlap, and from when to when it was there."""

    track: int
    samples: Samples
    starts: Int64
    ends: Int64
    began_ns: int
    ended_ns: int
    windows: tuple[tuple[int, int], ...]


@once_a_trace
def stack_time(trace: Trace) -> StackTime | None:
    """The time of all threads by stack; None without samples."""
    if trace.samples is None:
        return None
    parts = [_recorded_ops(trace)] if trace.stack is not None else []
    for thread in _threads(trace, trace.samples):
        parts.append(_rest_divided(trace, thread))
        if trace.stack is None:
            parts.append(_ops_divided(thread))
    if not parts:
        return _rows([], [], [], [], [], [], is_estimate=True)
    runs = np.cumsum([0, *(len(part) for part in parts)])  # a part has at most as many runs as rows
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in vars(parts[0])}
    columns["run"] = np.concatenate([part.run + first for part, first in zip(parts, runs, strict=False)])
    outside = Outside(*(columns[name] for name in Outside._fields))
    columns["python_ns"], columns["waiting_ns"] = without_marks(trace, outside)
    return StackTime(**columns)


def _recorded_ops(trace: Trace) -> StackTime:
    """The self time of all ops of threads, by their stacks."""
    chosen = np.flatnonzero(counted_ops(trace) & ~trace.on_device)
    stack = np.full(len(trace), -1, np.int32) if trace.stack is None else trace.stack
    self_ns = op_costs(trace).self_ns[chosen]
    number, first, size = number_combinations([stack[chosen], trace.track[chosen]])
    stacks, tracks = stack[chosen[first]], trace.track[chosen[first]]
    order = np.lexsort((tracks, stacks))
    time_ns, nothing = sums(number, self_ns, size)[order], np.zeros(size, np.int64)
    return _rows(stacks[order], tracks[order], time_ns, nothing, nothing, np.arange(size), is_estimate=False)


def _threads(trace: Trace, samples: Samples) -> list[_Thread]:
    """The threads that have samples, and main threads that ran ops for too short a time to have some."""
    ops = np.flatnonzero(counted_ops(trace) & ~trace.on_device & ~trace.is_async)
    intervals = {
        int(trace.track[rows[0]]): merged(starts, ends)
        for rows, starts, ends in by_thread(ops, trace.track, trace.start_ns, trace.end_ns)
    }
    nothing = np.empty(0, np.int64)
    threads = []
    owners = {track: trace.processes[trace.tracks[track].process] for track in intervals}
    main = [track for track, process in owners.items() if trace.tracks[track].native_id == process.pid]
    for track in np.union1d(samples.track, np.array(main, np.int32)).tolist():
        starts, ends = intervals.get(track, (nothing, nothing))
        own = samples.take(samples.track == track).with_late_waits()
        program = program_of(trace, track)
        began_ns, ended_ns = _lifetime(trace, samples, own, program)
        began_ns, ended_ns = min([began_ns, *starts[:1].tolist()]), max([ended_ns, *ends[-1:].tolist()])
        threads.append(_Thread(track, own, starts, ends, began_ns, ended_ns, program.windows))
    return threads


def _lifetime(trace: Trace, samples: Samples, own: Samples, program: Program) -> tuple[int, int]:
    """When the thread of the samples `own` began and ended: to the middle between two moments of samples."""
    if not len(own):
        return program.began_ns, program.ended_ns
    first, last = int(own.time_ns[0]), int(own.taken_ns[-1])
    is_near = trace.processes_of(samples.track) == trace.processes_of(own.track[:1])
    moments = np.unique(samples.time_ns[is_near])
    before, after = moments[moments < first], moments[moments > last]
    began_ns = (int(before[-1]) + first) // 2 if len(before) else min(program.began_ns, first)
    ended_ns = (int(after[0]) + last) // 2 if len(after) else max(program.ended_ns, last)
    return began_ns, ended_ns


def _ops_divided(thread: _Thread) -> StackTime:
    """The time of `thread` in ops, divided among the samples that were taken there."""
    chosen = thread.samples.take(covered(thread.starts, thread.ends, thread.samples.time_ns))
    ops_ns = np.diff(covered_until(thread.starts, thread.ends, _bounds(thread, chosen)))
    stack, certainty = (chosen.stack, _certainty(chosen)) if len(chosen) else (np.array([-1], np.int32), None)
    tracks, nothing = np.full(len(stack), thread.track), np.zeros(len(ops_ns), np.int64)
    return _rows(stack, tracks, ops_ns, nothing, nothing, _runs(stack), is_estimate=True, certainty=certainty)


def _rest_divided(trace: Trace, thread: _Thread) -> StackTime:
    """The time of `thread` outside ops, divided among the samples that were taken there."""
    chosen = thread.samples.take(~covered(thread.starts, thread.ends, thread.samples.time_ns))
    middle = _bounds(thread, chosen)
    edges = np.clip(np.concatenate([middle[:1], chosen.taken_ns, middle[-1:]]), middle[0], middle[-1])

    def outside(begin: Int64, end: Int64) -> Int64:
        recorded: Int64 = _recorded_until(thread, end) - _recorded_until(thread, begin) - in_ops(begin, end)
        return np.maximum(recorded, 0)

    def in_ops(begin: Int64, end: Int64) -> Int64:
        return covered_until(thread.starts, thread.ends, end) - covered_until(thread.starts, thread.ends, begin)

    outside_ns = outside(edges[:-1], edges[1:])
    if not len(chosen):
        return _rows([-1], [thread.track], [0], outside_ns, [0], [0], is_estimate=True)
    before_middle = np.minimum(outside(edges[1:-2], np.maximum(middle[1:-1], edges[1:-2])), outside_ns[1:-1])
    split = split_time(chosen, outside_ns, before_middle, in_ops(edges[1:-2], edges[2:-1]))
    unseen = np.flatnonzero(split.unseen_ns)
    stack = np.append(chosen.stack, _callers_of_both(trace, chosen.stack[unseen], chosen.stack[unseen + 1]))
    runs, certainty = _runs(chosen.stack), _certainty(chosen)
    nothing = np.zeros(len(unseen), np.int64)
    return _rows(
        stack,
        np.full(len(stack), thread.track),
        np.zeros(len(stack), np.int64),
        np.append(split.python_ns, split.unseen_ns[unseen]),
        np.append(split.waiting_ns, nothing),
        np.append(runs, runs[-1] + 1 + np.arange(len(unseen))),
        is_estimate=True,
        certainty=np.append(certainty, certainty[unseen]),
    )


def _certainty(samples: Samples) -> Int8:
    return np.zeros(len(samples), np.int8) if samples.certainty is None else samples.certainty


def _runs(stack: Int32) -> Int64:
    runs: Int64 = np.cumsum(np.diff(stack, prepend=stack[:1]) != 0)
    return runs


def _callers_of_both(trace: Trace, one: Int32, other: Int32) -> Int32:
    """For each pair of stacks the innermost that called both functions; -1 for none."""
    parents = [] if trace.stacks is None else trace.stacks.parent.tolist()
    callers: list[int] = []
    for first, second in zip(one.tolist(), other.tolist(), strict=True):
        while first != second:  # callers have lower numbers
            first, second = (parents[first], second) if first > second else (first, parents[second])
        is_same = first >= 0 and first in (one[len(callers)], other[len(callers)])
        callers.append(parents[first] if is_same else first)
    return np.array(callers, np.int32)


def _bounds(thread: _Thread, chosen: Samples) -> Int64:
    """The bounds between the times of neighbouring samples, with the start and end of the thread."""
    asked, taken = chosen.time_ns[1:], chosen.taken_ns[:-1]
    between = (np.minimum(taken, asked) + asked) // 2
    bounds: Int64 = np.concatenate([[thread.began_ns], between, [thread.ended_ns]]).astype(np.int64)
    return np.maximum.accumulate(np.clip(bounds, thread.began_ns, thread.ended_ns))


def _recorded_until(thread: _Thread, moments: Int64) -> Int64:
    """The recorded time before each moment: without the time between windows."""
    if len(thread.windows) < 2:
        return moments
    starts, ends = np.array(thread.windows, np.int64).T
    return covered_until(starts, ends, moments)


def _rows(*columns: npt.ArrayLike, is_estimate: bool, certainty: npt.ArrayLike | None = None) -> StackTime:
    """Rows of these columns: stack, track, time in ops, in Python code and in waiting, and run."""
    stack, track = (np.asarray(column, np.int32) for column in columns[:2])
    ops_ns, python_ns, waiting_ns, run = (np.asarray(column, np.int64) for column in columns[2:])
    surely = np.asarray(np.zeros(len(stack)) if certainty is None else certainty, np.int8)
    return StackTime(stack, track, ops_ns, python_ns, waiting_ns, run, np.full(len(stack), is_estimate), surely)
