"""How long each step of a recording took."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.analysis.summary import has_steps
from mtprof_nb.model.trace import OP, SCOPE, STEP_PREFIX, Int64, Trace


class StepTime(NamedTuple):
    """One step: its number, its start in Unix nanoseconds, and its length."""

    number: int
    start_ns: int
    duration_ns: int


@once_a_trace
def step_times(trace: Trace) -> tuple[StepTime, ...]:
    """The steps with ops, in their order; of several processes, the longest of each. Empty if no step was marked.

    A step is as long as its scope, which a schedule records. Otherwise it reaches from its first op or scope to that of
    the next step; the last one of a window, to the end of the window.
    """
    if not has_steps(trace):
        return ()
    with_ops = set(trace.step[trace.kind == OP].tolist())
    longest: dict[int, StepTime] = {}
    for rows in _rows_of_processes(trace):
        for step in _of_scopes(trace, rows) or _of_events(trace, rows):
            known = longest.get(step.number, step)
            if step.number in with_ops and step.duration_ns >= known.duration_ns:
                longest[step.number] = step
    return tuple(longest[number] for number in sorted(longest))


def _rows_of_processes(trace: Trace) -> list[Int64]:
    """The positions of the ops and scopes of each process."""
    runs = (trace.kind == OP) | (trace.kind == SCOPE)
    return [np.arange(len(trace))[rows][runs[rows]] for rows in trace.by_process(trace.track)]


def _of_scopes(trace: Trace, rows: Int64) -> list[StepTime]:
    scopes = rows[trace.where_name(lambda name: name.startswith(STEP_PREFIX))[rows]]
    columns = (trace.step[scopes], trace.start_ns[scopes], trace.duration_ns[scopes])
    return [StepTime(*step) for step in zip(*(column.tolist() for column in columns), strict=True)]


def _of_events(trace: Trace, rows: Int64) -> list[StepTime]:
    numbers, first = np.unique(trace.step[rows], return_index=True)
    order = np.argsort(first)
    numbers, starts = numbers[order], trace.start_ns[rows[first[order]]]
    window_ends = np.array([ended for _, ended in trace.windows] or [trace.ended_ns], np.int64)
    ends = window_ends[np.minimum(np.searchsorted(window_ends, starts, side="right"), len(window_ends) - 1)]
    ends[:-1] = np.minimum(ends[:-1], starts[1:])
    return [StepTime(*step) for step in zip(numbers.tolist(), starts.tolist(), (ends - starts).tolist(), strict=True)]
