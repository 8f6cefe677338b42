"""How long each step of a recording took, on each process and on all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.analysis.ranks.ranked_processes import (
    Windows,
    rows_of_processes,
    step_starts_of_processes,
    windows_of_processes,
)
from mtprof_nb.analysis.summary import has_steps
from mtprof_nb.model.trace import OP, SCOPE, STEP_PREFIX, Int64, StepStarts, Trace


class StepTime(NamedTuple):
    """One step: its number, its start in Unix nanoseconds, and its length."""

    number: int
    start_ns: int
    duration_ns: int


@once_a_trace
def step_times(trace: Trace) -> tuple[StepTime, ...]:
    """The steps with ops, in their order; of several processes, the longest of each. Empty if no step was marked."""
    longest: dict[int, StepTime] = {}
    for steps in steps_of_processes(trace):
        for step in steps:
            if step.duration_ns >= longest.get(step.number, step).duration_ns:
                longest[step.number] = step
    return tuple(longest[number] for number in sorted(longest))


@once_a_trace
def steps_of_processes(trace: Trace) -> tuple[tuple[StepTime, ...], ...]:
    """For each process its steps with ops, in their order; empty if no step was marked.

    A step is as long as its scope, which a schedule records. Otherwise it reaches from the `step()` that began it, the
    first from the start of the window, to the next `step()`; the last one of a window, to the end of the window. In
    a file without these moments, a step begins with its first op or scope. A step in which the recording was
    full is left out, and so is what ran after a loop over `steps()`.
    """
    if not has_steps(trace):
        return ((),) * len(trace.processes)
    runs = (trace.kind == OP) | (trace.kind == SCOPE)
    is_step = trace.where_name(lambda name: name.startswith(STEP_PREFIX))
    of_processes = []
    facts = zip(windows_of_processes(trace), step_starts_of_processes(trace), strict=True)
    full_ns = {span.began_ns for span in trace.unrecorded}
    for rows, (windows, starts) in zip(rows_of_processes(trace), facts, strict=True):
        own = rows[runs[rows]]
        with_ops = set(trace.step[rows[trace.kind[rows] == OP]].tolist())
        steps = _of_scopes(trace, own[is_step[own]]) or _of_starts(starts or _first_events(trace, own), windows)
        listed = {number for _, number in starts} or with_ops
        steps = [step for step in steps if step.start_ns + step.duration_ns not in full_ns]
        # A scope that is there twice, as in two windows, counts with its longer part.
        longest = {step.number: step for step in sorted(steps, key=lambda step: step.duration_ns)}
        of_processes.append(tuple(longest[number] for number in sorted(with_ops & listed & set(longest))))
    return tuple(of_processes)


def _of_scopes(trace: Trace, scopes: Int64) -> list[StepTime]:
    columns = (trace.step[scopes], trace.start_ns[scopes], trace.duration_ns[scopes])
    return [StepTime(*step) for step in zip(*(column.tolist() for column in columns), strict=True)]


def _first_events(trace: Trace, rows: Int64) -> StepStarts:
    numbers, first = np.unique(trace.step[rows], return_index=True)
    return tuple(sorted(zip(trace.start_ns[rows[first]].tolist(), numbers.tolist(), strict=True)))


def _of_starts(step_starts: StepStarts, windows: Windows) -> list[StepTime]:
    starts, numbers = np.array(step_starts, np.int64).reshape(-1, 2).T
    window_ends = np.array([ended for _, ended in windows], np.int64)
    ends = window_ends[np.minimum(np.searchsorted(window_ends, starts, side="right"), len(window_ends) - 1)]
    ends[:-1] = np.minimum(ends[:-1], starts[1:])
    return [StepTime(*step) for step in zip(numbers.tolist(), starts.tolist(), (ends - starts).tolist(), strict=True)]


@dataclass(frozen=True, eq=False)
class StepMatrix:
    """Nanoseconds of each step, a row, on each process, a column; -1 where a process has no such step."""

    numbers: tuple[int, ...]
    duration_ns: Int64

    def __len__(self) -> int:
        return len(self.numbers)


@once_a_trace
def step_matrix(trace: Trace) -> StepMatrix:
    """The steps of all processes; empty if no step was marked."""
    of_processes = steps_of_processes(trace)
    numbers = sorted({step.number for steps in of_processes for step in steps})
    place = {number: row for row, number in enumerate(numbers)}
    matrix = np.full((len(numbers), len(trace.processes)), -1, np.int64)
    for process, steps in enumerate(of_processes):
        for step in steps:
            matrix[place[step.number], process] = step.duration_ns
    return StepMatrix(tuple(numbers), matrix)
