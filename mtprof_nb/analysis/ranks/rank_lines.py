"""The time of each line and op on each process, and how much a cost differs between processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from mtprof_nb.analysis.costs import averaged_name, counted_ops, op_costs
from mtprof_nb.analysis.groups import sums, table_of_sums
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.intervals import distinct_numbers, runs_of_equal
from mtprof_nb.model.trace import COLLECTIVE, Int32, Int64, OutsideOps, SourceLine, Trace

Of = TypeVar("Of")


@dataclass(frozen=True, eq=False)
class TimesByProcess(Generic[Of]):
    """Nanoseconds of each entry, a row, in each process, a column."""

    entries: Sequence[Of]
    time_ns: Int64

    def longest(self, process: int) -> tuple[Of, int] | None:
        """The entry with the most time in a process, and that time; None if it spent none."""
        times = self.time_ns[:, process]
        place = int(times.argmax()) if len(times) else -1
        return (self.entries[place], int(times[place])) if place >= 0 and times[place] else None


@once_a_trace
def line_times_by_process(trace: Trace) -> TimesByProcess[SourceLine]:
    """The time of each line itself: its ops in all phases, and where it is known its time outside ops."""
    caused, is_op = attribution(trace), counted_ops(trace)
    rows = np.flatnonzero(is_op & (caused.line >= 0))
    table = _table(trace, caused.line[rows], op_costs(trace).self_ns[rows], rows, len(caused.lines))
    by_line = dict(zip(caused.lines, table, strict=True))
    for process, pairs in enumerate(_outside(trace)):
        for line, outside in pairs:
            by_line.setdefault(line, np.zeros(len(trace.processes), np.int64))[process] += outside.own_ns
    times = np.stack(list(by_line.values())) if by_line else np.empty((0, len(trace.processes)), np.int64)
    return TimesByProcess(tuple(by_line), times)


def _outside(trace: Trace) -> list[Sequence[tuple[SourceLine, OutsideOps]]]:
    if trace.process_facts:
        return [facts.outside or () for facts in trace.process_facts]
    return [tuple((trace.outside or {}).items()) if len(trace.processes) == 1 else ()] * len(trace.processes)


@once_a_trace
def op_times_by_process(trace: Trace) -> TimesByProcess[str]:
    """The time of kernels of each name, without collectives; without devices, the self time of each op."""
    if (work := trace.is_device_work).any():
        rows, time_ns = np.flatnonzero(work & (trace.kind != COLLECTIVE)), trace.duration_ns
    else:
        rows, time_ns = np.flatnonzero(counted_ops(trace)), op_costs(trace).self_ns
    names: dict[str, int] = {}
    number = np.array([names.setdefault(averaged_name(name), len(names)) for name in trace.names] or [0], np.int32)
    return TimesByProcess(tuple(names), _table(trace, number[trace.name[rows]], time_ns[rows], rows, len(names)))


def _table(trace: Trace, number: Int32, values: Int64, rows: Int64, size: int) -> Int64:
    process = trace.processes_of(trace.track[rows])
    return table_of_sums(number, process, values, (size, len(trace.processes)))


@once_a_trace
def spread_of_lines(trace: Trace) -> dict[SourceLine, tuple[int, int, int]]:
    """For each line the median and the most of its time on one process, and the process with the most."""
    times = line_times_by_process(trace)
    columns = (np.median(times.time_ns, axis=1), times.time_ns.max(axis=1))
    most = times.time_ns.argmax(axis=1) if len(times.entries) else np.empty(0, np.int64)
    rows = zip(*(column.astype(np.int64).tolist() for column in (*columns, most)), strict=True)
    return dict(zip(times.entries, rows, strict=True))


@dataclass(frozen=True, eq=False)
class Spread:
    """For each row the least, the median and the most of all processes; one without the row counts as 0."""

    least: Int64
    median: Int64
    most: Int64
    #: The process with the most, -1 for a row without any.
    process: Int32


def spread_of_events(trace: Trace, row: Int32, values: Int64, size: int) -> Spread:
    """The spread of the sums of `values`, one an event, over the events of each row; -1 is no row."""
    known = np.flatnonzero(row >= 0)
    processes = len(trace.processes)
    cell = row[known].astype(np.int64) * processes + trace.processes_of(trace.track[known])
    # Most rows are not in all of many processes: only pairs that occur are kept.
    pairs, number = distinct_numbers(cell)
    at_row, process = np.divmod(pairs, processes)
    value = sums(number, values[known], len(pairs))
    least, median, most = (np.zeros(size, np.int64) for _ in range(3))
    who = np.full(size, -1, np.int32)
    order = np.lexsort((value, at_row))
    for rows in runs_of_equal(at_row[order]):
        chosen = order[rows]
        at, own = int(at_row[chosen[0]]), value[chosen]
        missing = processes - len(own)  # a process without the row counts as 0
        middle = [own[place - missing] if place >= missing else 0 for place in ((processes - 1) // 2, processes // 2)]
        least[at] = min(int(own[0]), 0) if missing else own[0]
        median[at] = sum(map(int, middle)) // 2
        most[at] = own[-1]
        who[at] = process[chosen[-1]]
    return Spread(least, median, most, who)
