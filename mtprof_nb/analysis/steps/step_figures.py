"""The time of each step by phase, and in what slow steps differ from the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from mtprof_nb.analysis.costs import counted_ops, op_costs
from mtprof_nb.analysis.groups import sums, table_of_sums
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.analysis.program_time.data_loading import loader_calls
from mtprof_nb.analysis.program_time.spent_time import apart_from
from mtprof_nb.analysis.steps.step_times import step_times
from mtprof_nb.model.trace import COMPILING, PHASES, Int32, Int64, SourceLine, Trace

#: A step is slow from this many times the median on.
SLOW = 1.5
#: The most slow steps, and the most differences of each.
_MOST_SLOW, _MOST_DIFFERENCES = 10, 3
#: A difference is listed from this share of the extra time of a slow step on.
_LEAST_SHARE = 0.1


class StepDifference(NamedTuple):
    """Something that took longer in a step than usual: a line, an op, the DataLoader, collections, time outside ops."""

    title: str
    line: SourceLine | None
    ns: int
    usual_ns: int


class SlowStep(NamedTuple):
    """A slow step: its position among the steps, and what took longer in it, the most first."""

    position: int
    differences: tuple[StepDifference, ...]


@dataclass(frozen=True, eq=False)
class StepFigures:
    """One entry a step, in their order."""

    number: Int64
    start_ns: Int64
    duration_ns: Int64
    #: Self time of its ops, a row for each of `PHASES`.
    phases_ns: Int64
    #: Counted ops.
    ops: Int64
    slow: tuple[SlowStep, ...]

    def __len__(self) -> int:
        return len(self.number)

    @property
    def outside_ns(self) -> Int64:
        """The time of each step that is in no op; 0 where ops of several threads overlap."""
        outside: Int64 = np.maximum(self.duration_ns - self.phases_ns.sum(axis=0), 0)
        return outside

    @property
    def median_ns(self) -> int:
        return int(np.median(self.duration_ns))

    def quantile_ns(self, share: float) -> int:
        """The duration that this share of the steps does not exceed."""
        return int(np.quantile(self.duration_ns, share, method="higher"))


@once_a_trace
def step_figures(trace: Trace) -> StepFigures | None:
    """The figures of all steps of a single process; None without marked steps."""
    steps = step_times(trace) if len(trace.processes) == 1 else ()
    if not steps:
        return None
    columns = (np.array(column, np.int64) for column in zip(*steps, strict=True))
    number, start_ns, duration_ns = columns
    rows = np.flatnonzero(counted_ops(trace) & np.isin(trace.step, number))
    position = np.searchsorted(number, trace.step[rows])
    own = op_costs(trace).self_ns[rows]
    made = StepFigures(
        number=number,
        start_ns=start_ns,
        duration_ns=duration_ns,
        phases_ns=table_of_sums(trace.phase[rows], position, own, (len(PHASES), len(number))),
        ops=np.bincount(position[trace.phase[rows] != COMPILING], minlength=len(number)),
        slow=(),
    )
    return replace(made, slow=_slow_steps(trace, made, rows, position))


def _slow_steps(trace: Trace, steps: StepFigures, rows: Int64, position: Int64) -> tuple[SlowStep, ...]:
    """The slowest of the slow steps, in the order of time, with what took longer in each than in the median step."""
    if len(steps) < 3:
        return ()
    order = np.argsort(-steps.duration_ns, kind="stable")[:_MOST_SLOW]
    chosen = sorted(order[steps.duration_ns[order] >= SLOW * steps.median_ns].tolist())
    if not chosen:
        return ()
    titles, lines, times = _parts(trace, steps, rows, position)
    usual = np.median(times, axis=1).astype(np.int64)
    return tuple(SlowStep(at, _differences(steps, at, titles, lines, times[:, at], usual)) for at in chosen)


def _differences(
    steps: StepFigures, at: int, titles: list[str], lines: list[SourceLine | None], times: Int64, usual: Int64
) -> tuple[StepDifference, ...]:
    more = times - usual
    least = _LEAST_SHARE * (int(steps.duration_ns[at]) - steps.median_ns)
    largest = [part for part in np.argsort(-more, kind="stable")[:_MOST_DIFFERENCES].tolist() if more[part] >= least]
    return tuple(StepDifference(titles[part], lines[part], int(times[part]), int(usual[part])) for part in largest)


def _parts(
    trace: Trace, steps: StepFigures, rows: Int64, position: Int64
) -> tuple[list[str], list[SourceLine | None], Int64]:
    """Titles, lines and time in each step of its parts: lines or else ops, the DataLoader, collections, the rest."""
    caused, own = attribution(trace), op_costs(trace).self_ns[rows]
    by_line = bool((caused.line[rows] >= 0).any())
    table: Int32 = caused.line if by_line else trace.name
    known = table[rows] >= 0
    names = [str(line.line) for line in caused.lines] if by_line else list(trace.names)
    lines: list[SourceLine | None] = [*caused.lines] if by_line else [None] * len(trace.names)
    of_ops = table_of_sums(table[rows][known], position[known], own[known], (len(names), len(steps)))
    calls = loader_calls(trace)
    calls = calls[np.isin(trace.step[calls], steps.number)]
    step_of_call = np.searchsorted(steps.number, trace.step[calls])
    waits = sums(step_of_call, trace.duration_ns[calls], len(steps))
    out_of_ops = apart_from(trace, rows, trace.start_ns[calls], trace.end_ns[calls])
    collected = _collected(trace, steps, np.union1d(rows, calls))
    outside = np.maximum(steps.outside_ns - sums(step_of_call, out_of_ops, len(steps)) - collected, 0)
    others = ["DataLoader's next", "garbage collection", "outside ops"]
    return [*names, *others], [*lines, *[None] * 3], np.stack([*of_ops, waits, collected, outside])


def _collected(trace: Trace, steps: StepFigures, events: Int64) -> Int64:
    """The time of garbage collections in each step, apart from those in `events`, to which their time belongs."""
    collections = trace.collections
    if collections is None:
        return np.zeros(len(steps), np.int64)
    at = np.searchsorted(steps.start_ns, collections.start_ns, side="right") - 1
    inside = (at >= 0) & (collections.start_ns < (steps.start_ns + steps.duration_ns)[at])
    spent_ns = apart_from(trace, events, collections.start_ns, collections.end_ns)
    return sums(at[inside], spent_ns[inside], len(steps))
