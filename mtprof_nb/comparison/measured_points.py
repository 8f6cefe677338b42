"""The measured times behind a verdict: of steps, of blocks of calls, or of whole runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mtprof_nb.analysis.program_time.recorded_time import recorded_ns
from mtprof_nb.comparison.compared import Compared
from mtprof_nb.comparison.differences import step_lengths
from mtprof_nb.comparison.sides import Side

#: The most points of a side.
MOST_POINTS = 400


class MeasuredPoints(NamedTuple):
    """Times of both sides, in nanoseconds: for each run its points in order. `unit` names a point."""

    unit: str
    a: list[list[float]]
    b: list[list[float]]


def measured_points(compared: Compared) -> MeasuredPoints:
    """The points of both sides, thinned where there are many; the shortest and the longest of a run are kept."""
    times, sides = compared.alternated, compared.sides
    if times is not None:
        return MeasuredPoints("block of calls", *([_thinned(ns, MOST_POINTS)] for ns in (times.a_ns, times.b_ns)))
    if min(sides.a.steps + sides.b.steps) >= 2:
        return MeasuredPoints("step", *(_steps(side) for side in sides.both))
    return MeasuredPoints("run", *([[float(recorded_ns(run))] for run in side.runs] for side in sides.both))


def _steps(side: Side) -> list[list[float]]:
    most = max(MOST_POINTS // len(side.runs), 4)
    return [_thinned(step_lengths(run), most) for run in side.runs]


def _thinned(times: Sequence[float], most: int) -> list[float]:
    if len(times) <= most:
        return [float(time) for time in times]
    chosen = set(np.linspace(0, len(times) - 1, most - 2).round().astype(int).tolist())
    chosen |= {int(np.argmin(times)), int(np.argmax(times))}
    return [float(times[at]) for at in sorted(chosen)]
