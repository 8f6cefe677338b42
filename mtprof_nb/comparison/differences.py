"""Times and calls of both sides: of the whole, of steps and phases, of lines, ops and kernels."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from mtprof_nb.analysis.costs import counted_ops, op_costs
from mtprof_nb.analysis.groups import sums
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.program_time.recorded_time import recorded_ns
from mtprof_nb.analysis.steps.step_times import step_times
from mtprof_nb.analysis.summary import marked_steps, summary
from mtprof_nb.comparison.joined_rows import EDITED, Difference, Item, Items, joined, of_runs, verdict_on
from mtprof_nb.comparison.program_lines import programs, where
from mtprof_nb.comparison.sides import Side, Sides, has_bytes, has_device_work
from mtprof_nb.comparison.verdicts import Parts
from mtprof_nb.model.trace import DEVICE_WORK, PHASES, Bool, Int64, SourceLine, Trace
from mtprof_nb.tables.line_table import LineRow
from mtprof_nb.tables.operators.operator_rows import rows


def whole_difference(sides: Sides) -> Difference:
    """The wall time, without the profiler's own start and line marks."""
    a, b = (np.array([recorded_ns(run) / sides.divisor(run) for run in side.runs]) for side in sides.both)
    verdict = verdict_on(sides, a, b, *(_steps(sides) if sides.in_steps else _all_calls(sides)))
    return Difference("whole", "wall time", a_ns=float(np.median(a)), b_ns=float(np.median(b)), verdict=verdict)


def step_difference(sides: Sides) -> Difference | None:
    """The median step; None unless each run has at least two steps."""
    if min(sides.a.steps + sides.b.steps) < 2:
        return None
    a, b = _medians(sides.a), _medians(sides.b)
    verdict = verdict_on(sides, a, b, *_steps(sides))
    return Difference("step", "median step", a_ns=float(np.median(a)), b_ns=float(np.median(b)), verdict=verdict)


def step_lengths(run: Trace) -> list[int]:
    """Nanoseconds of each step."""
    return [step.duration_ns for step in step_times(run)]


def phase_differences(sides: Sides) -> list[Difference]:
    """Time in ops by phase, in the order of a step."""
    items = of_runs(sides, lambda run: _phase_items(sides, run))
    return sorted(joined(sides, "phase", *items), key=lambda row: PHASES.index(row.name))


def line_differences(sides: Sides) -> list[Difference]:
    """Lines that ran, the largest change of time first; empty where a run has no lines."""
    both = programs(sides)
    if both is None:
        return []
    (a, b, b_of_a), with_bytes = both, sides.have(has_bytes)
    # A line that b alone has may have the file and number of another one of a.
    keys = {line: ("b", line) for line in b.first} | {other: line for line, other in b_of_a.items()}
    lines = {keys[line]: _Line(None, row) for line, row in b.first.items()}
    lines |= {line: _Line(row, b.first[b_of_a[line]] if line in b_of_a else None) for line, row in a.first.items()}
    of_a: list[Items] = [
        {at: lines[at].item(sides, run, row, with_bytes) for at, row in rows.items()} for run, rows in a.runs
    ]
    of_b: list[Items] = [
        {keys[at]: lines[keys[at]].item(sides, run, row, with_bytes) for at, row in rows.items()}
        for run, rows in b.runs
    ]
    return joined(sides, "line", of_a, of_b)


def op_differences(sides: Sides) -> list[Difference]:
    """Ops, the largest change of time first."""
    return joined(sides, "op", *of_runs(sides, lambda run: _op_items(sides, run, on_device=False)))


def kernel_differences(sides: Sides) -> list[Difference]:
    """Kernels, copies, sets and collectives, the largest change of time first; empty if a run has no device."""
    if not sides.have(has_device_work):
        return []
    return joined(sides, "kernel", *of_runs(sides, lambda run: _op_items(sides, run, on_device=True)))


class _Line:
    """One line in both programs."""

    def __init__(self, a: LineRow | None, b: LineRow | None) -> None:
        there = [row for row in (a, b) if row is not None]
        self._name = there[-1].source or f"{where(there[-1])}:{there[-1].line}"
        self._detail = " → ".join(dict.fromkeys(f"{where(row)}:{row.line}" for row in there if row.file))
        self._change = EDITED if len({row.source for row in there}) > 1 else ""

    def item(self, sides: Sides, run: Trace, row: LineRow, with_bytes: bool) -> Item:
        """The values of the line in one run, where it has this row."""
        nbytes = row.allocated_bytes or 0 if with_bytes else None
        parts = partial(_of_line, sides, run, row)
        return Item(self._name, self._detail, row.count, row.time_ns, nbytes, self._change, parts)


def _of_line(sides: Sides, run: Trace, row: LineRow) -> Int64:
    caused, line = attribution(run), SourceLine(row.file, row.line)
    number = caused.lines.index(line) if line in caused.lines else -1
    return parts_of(sides, run, op_costs(run).self_ns, counted_ops(run) & (caused.line == number))


def _op_items(sides: Sides, run: Trace, on_device: bool) -> Items:
    table = rows(run, "op")
    with_bytes = sides.have(has_bytes) and not on_device
    ns = table.value["self_device_ns" if on_device else "self_ns"].tolist()
    nbytes = table.value["allocated_bytes"].tolist() if with_bytes else [None] * len(table)
    calls = table.value["count"].tolist()
    return {
        key: Item(table.label[at], _device(key), calls[at], ns[at], nbytes[at], parts=partial(_of_op, sides, run, at))
        for at, key in enumerate(table.key)
        if (key[2] in DEVICE_WORK) == on_device
    }


def _device(key: tuple[Any, ...]) -> str:
    """The device that an op ran on; "" on the CPU, and for kernels, which a device always runs."""
    return "" if key[1] == "CPU" or key[2] in DEVICE_WORK else str(key[1])


def _of_op(sides: Sides, run: Trace, row: int) -> Int64:
    costs, is_of_row = op_costs(run), rows(run, "op").of_event == row
    times = run.duration_ns if run.on_device[is_of_row].any() else costs.self_ns
    return parts_of(sides, run, times, is_of_row & costs.counted)


def _phase_items(sides: Sides, run: Trace) -> Items:
    is_op, own_ns = counted_ops(run), op_costs(run).self_ns
    return {
        name: Item(name, ns=ns, parts=partial(parts_of, sides, run, own_ns, is_op & (run.phase == PHASES.index(name))))
        for name, ns in summary(run).phases_ns.items()
        if ns
    }


def parts_of(sides: Sides, run: Trace, times: Int64, chosen: Bool) -> Int64:
    """The times of the chosen events in each step that has any; without steps, of their calls but for the longest."""
    if not sides.in_steps:
        return _steady_calls(run, times, chosen)
    chosen = chosen & np.isin(run.step, marked_steps(run))
    _, number = np.unique(run.step[chosen], return_inverse=True)
    return sums(number.ravel(), times[chosen], int(number.max(initial=-1)) + 1)


def _steady_calls(run: Trace, times: Int64, chosen: Bool) -> Int64:
    """The times of the chosen events without the longest tenth of the calls of each op, at least one.

    No single stall, first call or import explains these.
    """
    events = np.flatnonzero(chosen & (rows(run, "op").of_event >= 0))
    op = rows(run, "op").of_event[events]
    order = np.lexsort((times[events], op))
    calls = np.bincount(op, minlength=1)
    place = np.arange(len(order)) - (np.cumsum(calls) - calls)[op[order]]
    kept: Int64 = times[events][order][place < (calls * 9 // 10)[op[order]]]
    return kept


def _all_calls(sides: Sides) -> list[Parts]:
    """The calls of each side's ops without the longest ones; none if ops ran in parallel, beyond the wall time."""
    return [partial(_calls, sides, side.runs[0]) for side in sides.both]


def _calls(sides: Sides, run: Trace) -> Int64:
    is_known = summary(run).outside_ns is not None
    return parts_of(sides, run, op_costs(run).self_ns, counted_ops(run) & is_known)


def _steps(sides: Sides) -> tuple[Parts, Parts]:
    return partial(step_lengths, sides.a.runs[0]), partial(step_lengths, sides.b.runs[0])


def _medians(side: Side) -> np.ndarray:
    return np.array([np.median(step_lengths(run)) for run in side.runs])
