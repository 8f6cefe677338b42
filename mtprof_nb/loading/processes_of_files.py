"""Traces of several files as one: which of them are one process, and which ranks they have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mtprof_nb.errors import LoadError
from mtprof_nb.loading.one_job import Extent, gap_between
from mtprof_nb.model.common_terms import with_same_cells
from mtprof_nb.model.merge import merge
from mtprof_nb.model.trace import Process, Trace
from mtprof_nb.reading import rank_in_name

Align = Callable[[Sequence[Trace]], list[Trace]]


def joined_files(files: Sequence[Path], traces: Sequence[Trace], align: Align, *, by_order: bool) -> Trace:
    """One trace of all files.

    The rank of a process is that of its trace, else the number after "rank" in the name of the file or of its folder.
    With `by_order`, a process that still has none gets the next free number. Files of one process, such as the windows
    of a schedule, become one; `align` then moves the clocks of processes that ran on several hosts, or on unknown ones.
    """
    if len(traces) == 1:
        return traces[0]
    ranked = [_with_rank(trace, rank_in_name(file)) for file, trace in zip(files, traces, strict=True)]
    groups: list[_Group] = []
    for file, trace in zip(files, with_same_cells(ranked), strict=True):
        _add(groups, file, trace, by_order)
    parts = [merge(group.traces) for group in groups]
    if by_order and len(parts) > 1:
        parts = _with_note_of_gap(groups, _with_ranks_by_order(parts))
    return merge(parts if _on_one_host(parts) else align(parts))


def _with_note_of_gap(groups: Sequence[_Group], parts: list[Trace]) -> list[Trace]:
    """The traces, with a note if they may be of different jobs: clocks of Chrome traces may have any beginning."""
    extents = [
        Extent(group.files[0], group.process, part.began_ns, part.ended_ns)
        for group, part in zip(groups, parts, strict=True)
    ]
    gap = gap_between(extents)
    if gap is None:
        return parts
    note = f"{gap}: they may be of different jobs, or their clocks differ. Ranks are the order of the files."
    return [replace(parts[0], notes=(*parts[0].notes, note)), *parts[1:]]


def _on_one_host(parts: Sequence[Trace]) -> bool:
    hosts = {process.host for part in parts for process in part.processes}
    return len(parts) == 1 or (len(hosts) == 1 and hosts != {""})


@dataclass(frozen=True)
class _Group:
    """Files of one process, one after another."""

    process: tuple[Process, ...]
    files: list[Path]
    traces: list[Trace]

    def at_same_time(self, trace: Trace) -> Path | None:
        """The first of the files that ran at the same time as `trace`; None if there is none."""
        spans = zip(self.files, self.traces, strict=True)
        return next((file for file, other in spans if _overlap(other, trace)), None)


def _add(groups: list[_Group], file: Path, trace: Trace, by_order: bool) -> None:
    process = tuple(one._replace(metadata=()) for one in trace.processes)
    same = [group for group in groups if group.process == process]
    overlapping = [group.at_same_time(trace) for group in same]
    for group, other in zip(same, overlapping, strict=True):
        if other is None:
            group.files.append(file)
            group.traces.append(trace)
            return
    # Two machines may give the same number to two processes, which then run at the same time.
    if same and not (by_order and _lacks_rank(trace)):
        titles = ", ".join(one.title for one in process)
        msg = f"{str(overlapping[0])!r} and {str(file)!r} hold the same process ({titles}) at the same time: load one"
        raise LoadError(msg)
    groups.append(_Group(process, [file], [trace]))


def _overlap(one: Trace, other: Trace) -> bool:
    """Whether more than half of the shorter trace lies within the other."""
    shared = min(one.ended_ns, other.ended_ns) - max(one.began_ns, other.began_ns)
    return 2 * shared > min(one.ended_ns - one.began_ns, other.ended_ns - other.began_ns)


def _lacks_rank(trace: Trace) -> bool:
    return len(trace.processes) == 1 and trace.processes[0].rank < 0


def _with_rank(trace: Trace, rank: int | None) -> Trace:
    if rank is None or not _lacks_rank(trace):
        return trace
    return replace(trace, processes=(trace.processes[0]._replace(rank=rank),))


def _with_ranks_by_order(parts: list[Trace]) -> list[Trace]:
    taken = {process.rank for part in parts for process in part.processes}
    free = iter(rank for rank in range(len(parts) + len(taken)) if rank not in taken)
    return [_with_rank(part, next(free)) if _lacks_rank(part) else part for part in parts]
