"""The processes of a recording by rank, each with its events and its windows."""

from __future__ import annotations

from functools import partial

import numpy as np

from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.one_process import of_process
from mtprof_nb.model.trace import Int64, StepStarts, Trace

Windows = tuple[tuple[int, int], ...]


def titles(trace: Trace) -> list[str]:
    """The title of each process: `rank 3`, and its position too, where two have the same title."""
    names = [process.title for process in trace.processes]
    return [name if names.count(name) == 1 else f"{name} ({place})" for place, name in enumerate(names)]


def process_of_rank(trace: Trace, rank: int) -> int:
    """The position of the process with this rank. `ValueError` lists the ranks if there is none."""
    ranks = [process.rank for process in trace.processes]
    if rank not in ranks:
        known = ", ".join(str(one) for one in sorted(ranks) if one >= 0)
        remedy = f"it has {known}" if known else "its processes have no ranks: leave rank out"
        msg = f"there is no rank {rank!r} in this recording: {remedy}"
        raise ValueError(msg)
    return ranks.index(rank)


@once_a_trace
def trace_of_process(trace: Trace, number: int) -> Trace:
    """One of several processes as a recording of its own, which is kept as long as the whole."""
    return of_process(trace, number)


def trace_of_rank(trace: Trace, rank: int | None) -> Trace:
    """The recording of one rank; all of it for None."""
    if rank is None:
        return trace
    number = process_of_rank(trace, rank)
    return trace if len(trace.processes) == 1 else trace_of_process(trace, number)


@once_a_trace
def rows_of_processes(trace: Trace) -> list[Int64]:
    """Positions of the events of each process, in order."""
    return [np.arange(len(trace))] if len(trace.processes) == 1 else trace.by_process(trace.track)


@once_a_trace
def windows_of_processes(trace: Trace) -> list[Windows]:
    """The recorded windows of each process; where they are not known, the time that its events span."""
    if trace.process_facts:
        return [facts.windows or ((facts.began_ns, facts.ended_ns),) for facts in trace.process_facts]
    if len(trace.processes) == 1 and trace.ended_ns > trace.began_ns:
        return [trace.windows or ((trace.began_ns, trace.ended_ns),)]
    return list(map(partial(_span, trace), rows_of_processes(trace)))


def step_starts_of_processes(trace: Trace) -> list[StepStarts]:
    """When the steps of each process began, with their numbers; () where that is not known."""
    if len(trace.processes) == 1:
        return [trace.step_starts]
    return [facts.step_starts for facts in trace.process_facts] or [()] * len(trace.processes)


def _span(trace: Trace, rows: Int64) -> Windows:
    if not len(rows):
        return ((0, 0),)
    return ((int(trace.start_ns[rows].min()), int(trace.end_ns[rows].max())),)
