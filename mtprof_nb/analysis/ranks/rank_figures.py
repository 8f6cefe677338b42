"""The figures of each process of a recording: how it divided its time, and who waited for whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtprof_nb.analysis.costs import counted_ops, op_costs
from mtprof_nb.analysis.groups import sums
from mtprof_nb.analysis.nesting import is_among
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.analysis.ranks.matched_calls import matched_calls
from mtprof_nb.analysis.ranks.rank_lines import line_times_by_process
from mtprof_nb.analysis.ranks.ranked_processes import rows_of_processes, titles, windows_of_processes
from mtprof_nb.analysis.steps.step_times import steps_of_processes
from mtprof_nb.model.collective_calls import rows_of_collectives
from mtprof_nb.model.intervals import covered_length
from mtprof_nb.model.source_files import line_label
from mtprof_nb.model.trace import KERNEL, OP, SET, Bool, Int64, Trace

#: Ops that only hand a collective to the threads or streams that run it.
_POSTS_COLLECTIVE = ("c10d::", "_c10d_functional::", "record_param_comms")


@dataclass(frozen=True)
class RankFigures:
    """Figures of one process, in nanoseconds and bytes.

    `computing_ns`, `communicating_ns`, `waiting_ns`, `outside_ns` and `profiler_ns` sum up to `wall_ns`.
    """

    #: -1 for a process without a rank.
    rank: int
    #: `rank 3`, or the process where it has no rank.
    title: str
    host: str
    pid: int
    #: Recorded time.
    wall_ns: int
    #: Self time of all ops, summed over threads.
    in_ops_ns: int
    #: Time in which a kernel ran on a device of the process; without devices, in which an op ran on any thread.
    computing_ns: int
    #: Time of collectives after all processes had come, while nothing computed.
    communicating_ns: int
    #: Time in collectives until the last process came, while nothing computed.
    waiting_ns: int
    #: Time in which none of these happened: Python code, input, a device without work.
    outside_ns: int
    #: The rest: what the profiler took outside ops.
    profiler_ns: int
    #: Number of collectives in which each process waits for all.
    collectives: int
    #: In how many of these the process came last, and how long each of the others then waited for it on average.
    came_last: int
    waited_for_ns: int
    #: Number of steps, and their median length; None if no step was marked.
    steps: int
    step_ns: int | None
    #: The most bytes held at once by one device; None if no memory was recorded.
    peak_bytes: int | None
    #: The line with the most time, `Cell [3]:12`, and that time; "" if no lines are known.
    hottest_line: str
    hottest_line_ns: int

    @property
    def program_ns(self) -> int:
        """The wall time without the profiler's, which the shares of the parts are of."""
        return self.wall_ns - self.profiler_ns


@once_a_trace
def rank_figures(trace: Trace) -> tuple[RankFigures, ...]:
    """The figures of each process, by rank; processes without one are last."""
    calls, in_ops, parts, peaks = matched_calls(trace), _in_ops(trace), _divided(trace), _peaks(trace)
    own_ns = [facts.own_ns for facts in trace.process_facts] or [trace.own_ns if len(trace.processes) == 1 else 0]
    own_ns = own_ns * (len(trace.processes) if len(own_ns) == 1 else 1)
    waited_for, rows = waited_for_ns(trace), []
    for number, (process, title) in enumerate(zip(trace.processes, titles(trace), strict=True)):
        wall = sum(max(ended - began, 0) for began, ended in windows_of_processes(trace)[number])
        computing, waiting, communicating = parts[number]
        left = max(wall - computing - waiting - communicating, 0)
        steps = [step.duration_ns for step in steps_of_processes(trace)[number]]
        hottest = line_times_by_process(trace).longest(number)
        figures = RankFigures(
            rank=process.rank,
            title=title,
            host=process.host,
            pid=process.pid,
            wall_ns=wall,
            in_ops_ns=int(in_ops[number]),
            computing_ns=computing,
            communicating_ns=communicating,
            waiting_ns=waiting,
            outside_ns=left - min(own_ns[number], left),
            profiler_ns=min(own_ns[number], left),
            collectives=int((calls.is_meeting & calls.is_there[:, number]).sum()),
            came_last=int((calls.last == number).sum()),
            waited_for_ns=int(waited_for[number]),
            steps=len(steps),
            step_ns=int(np.median(steps)) if steps else None,
            peak_bytes=peaks.get(number),
            hottest_line=line_label(trace, *hottest[0]) if hottest else "",
            hottest_line_ns=hottest[1] if hottest else 0,
        )
        rows.append(figures)
    return tuple(sorted(rows, key=lambda row: (row.rank < 0, row.rank)))


@once_a_trace
def waited_for_ns(trace: Trace) -> Int64:
    """For each process, how long each of the others waited for it on average, over all calls in which it came last.

    Waiting because its recording began later does not count.
    """
    calls = matched_calls(trace)
    others = np.maximum(calls.is_there.sum(axis=1) - 1, 1)
    mean = calls.blamed_ns.sum(axis=1) // others
    late = np.flatnonzero(calls.last >= 0)
    return sums(calls.last[late], mean[late], len(trace.processes))


def _in_ops(trace: Trace) -> Int64:
    rows = np.flatnonzero(counted_ops(trace))
    process = trace.processes_of(trace.track[rows])
    return sums(process, op_costs(trace).self_ns[rows], len(trace.processes))


def _divided(trace: Trace) -> list[tuple[int, int, int]]:
    """For each process the time in which it computed, waited, and communicated.

    Time of two kinds at once counts for the first of them.
    """
    computes, is_call = _computes(trace), is_among(trace, rows_of_collectives(trace))
    calls, wait = matched_calls(trace), np.zeros(len(trace), np.int64)
    wait[calls.event[calls.is_there]] = calls.wait_ns[calls.is_there]
    parts = []
    for rows in rows_of_processes(trace):
        busy, called = rows[computes[rows]], rows[is_call[rows]]
        computing = _union(trace, busy)
        with_waits = _union(trace, busy, called, trace.start_ns[called] + wait[called])
        with_calls = _union(trace, busy, called, trace.end_ns[called])
        parts.append((computing, with_waits - computing, with_calls - with_waits))
    return parts


def _union(trace: Trace, rows: Int64, more: Int64 | None = None, until: Int64 | None = None) -> int:
    """The time in which one of the events at `rows` ran, or one of `more` that had not reached `until`."""
    start, end = trace.start_ns[rows], trace.end_ns[rows]
    if more is not None and until is not None:
        start, end = np.concatenate([start, trace.start_ns[more]]), np.concatenate([end, until])
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    return covered_length(start, end)


def _computes(trace: Trace) -> Bool:
    """The events during which a process computes: kernels and sets of those with devices, else ops."""
    on_device = (trace.kind == KERNEL) | (trace.kind == SET)
    is_op: Bool = (trace.kind == OP) & ~trace.where_name(lambda name: name.startswith(_POSTS_COLLECTIVE))
    if not trace.is_device_work.any():
        return is_op
    process = trace.processes_of(trace.track)
    has_device = np.bincount(process[trace.is_device_work], minlength=len(trace.processes)) > 0
    computes: Bool = np.where(has_device[process], on_device, is_op)
    return computes


def _peaks(trace: Trace) -> dict[int, int]:
    """The most bytes that one device of each process held; without processes that recorded no memory."""
    peaks = np.full(len(trace.processes), -1, np.int64)
    if trace.allocations is not None:
        np.maximum.at(peaks, trace.processes_of(trace.allocations.track), trace.allocations.total)
    elif trace.memory_before is not None and trace.memory_after is not None:
        np.maximum.at(peaks, trace.processes_of(trace.track), np.maximum(trace.memory_before, trace.memory_after))
    return {number: held for number, held in enumerate(peaks.tolist()) if held >= 0}
