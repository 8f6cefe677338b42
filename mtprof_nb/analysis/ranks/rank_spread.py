"""How much a cost differs between processes: the least, the median and the most, and who has the most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtprof_nb.analysis.groups import sums
from mtprof_nb.model.intervals import distinct_numbers, runs_of_equal
from mtprof_nb.model.trace import Int32, Int64, Trace


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
    return spread_of_pairs(
        pairs // processes, pairs % processes, sums(number, values[known], len(pairs)), size, processes
    )


def spread_of_pairs(row: Int64, process: Int64, value: Int64, size: int, processes: int) -> Spread:
    """The spread of `value`, one for each pair of a row and a process; a pair that is not there counts as 0."""
    least, median, most = (np.zeros(size, np.int64) for _ in range(3))
    who = np.full(size, -1, np.int32)
    order = np.lexsort((value, row))
    for rows in runs_of_equal(row[order]):
        chosen = order[rows]
        at, own = int(row[chosen[0]]), value[chosen]
        missing = processes - len(own)
        middle = [own[place - missing] if place >= missing else 0 for place in ((processes - 1) // 2, processes // 2)]
        least[at] = min(int(own[0]), 0) if missing else own[0]
        median[at] = sum(map(int, middle)) // 2
        most[at] = own[-1]
        who[at] = process[chosen[-1]]
    return Spread(least, median, most, who)
