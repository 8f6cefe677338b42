"""Whether files are of one job: a folder may hold the profiles of a month."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from mtprof_nb.errors import LoadError
from mtprof_nb.model.trace import Process
from mtprof_nb.reading import rank_in_name

#: Clocks of the machines of one job differ by less than this.
_LARGEST_GAP_NS = 60_000_000_000
_UNITS = ((86_400, "days"), (3_600, "hours"), (60, "minutes"), (1, "s"))


class Extent(NamedTuple):
    """A file, the processes in it, and its time."""

    file: Path
    processes: tuple[Process, ...]
    began_ns: int
    ended_ns: int


class Gap(NamedTuple):
    """A long time in which no process of two or more ran, between the files before and after it."""

    earlier: Extent
    later: Extent

    def __str__(self) -> str:
        seconds = (self.later.began_ns - self.earlier.ended_ns) / 1e9
        length, unit = next((length, unit) for length, unit in _UNITS if seconds >= 3 * length)
        return f"{str(self.later.file)!r} begins {seconds / length:,.0f} {unit} after {str(self.earlier.file)!r}"


def check_one_job(extents: Iterable[Extent]) -> None:
    """Raise `LoadError` for files of processes that did not run at the same time, unless each has a rank of its own."""
    if gap := gap_between(extents):
        msg = (
            f"these files are not the processes of one job: {gap}. Load each file by itself, "
            "or name those of one job only"
        )
        raise LoadError(msg)


def gap_between(extents: Iterable[Extent]) -> Gap | None:
    """The first gap between processes; None if there is none, or if each process has a rank of its own."""
    hulls = _by_process(extents)
    ranks = [process.rank for hull in hulls for process in hull.processes]
    if min(ranks, default=-1) >= 0 and len(set(ranks)) == len(ranks):
        return None
    hulls.sort(key=lambda hull: hull.began_ns)
    last = hulls[0] if hulls else None
    for hull in hulls:
        if last is not None and hull.began_ns - last.ended_ns > _LARGEST_GAP_NS:
            return Gap(last, hull)
        last = max(last or hull, hull, key=lambda one: one.ended_ns)
    return None


def _by_process(extents: Iterable[Extent]) -> list[Extent]:
    """One extent a process, from its first file to its last."""
    hulls: dict[tuple[Process, ...], Extent] = {}
    for extent in extents:
        key = _with_rank(tuple(one._replace(metadata=()) for one in extent.processes), extent.file)
        known = hulls.get(key, extent)
        began_ns, ended_ns = min(known.began_ns, extent.began_ns), max(known.ended_ns, extent.ended_ns)
        hulls[key] = known._replace(processes=key, began_ns=began_ns, ended_ns=ended_ns)
    return list(hulls.values())


def _with_rank(processes: tuple[Process, ...], file: Path) -> tuple[Process, ...]:
    """The processes; a single one without a rank gets the one in the name of its file."""
    rank = rank_in_name(file)
    if rank is None or len(processes) != 1 or processes[0].rank >= 0:
        return processes
    return (processes[0]._replace(rank=rank),)
