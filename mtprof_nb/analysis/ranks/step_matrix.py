"""How long each step took on each rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.analysis.steps.step_times import steps_of_processes
from mtprof_nb.model.trace import Int64, Trace


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
