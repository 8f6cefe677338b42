"""Facts that a recording of several processes has joined, as each process has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import NamedTuple

from mtprof_nb.model.schema import Moment


class SourceLine(NamedTuple):
    """One line of a file, or of a notebook cell (then `file` is the cell's compiled file name)."""

    file: str
    line: int


class OutsideOps(NamedTuple):
    """Time in which no op ran on any thread of the process: in a line itself, and with the lines that it called.

    Times of several processes are summed.
    """

    own_ns: int
    total_ns: int
    #: Time of the line itself that the profiler took for its marks and between them: no part of the other two.
    profiler_ns: int = 0


def summed(parts: list[Mapping[SourceLine, OutsideOps] | None]) -> dict[SourceLine, OutsideOps] | None:
    """The sums of each line over all parts; None if a part does not know them."""
    sums: dict[SourceLine, OutsideOps] = {}
    for part in parts:
        if part is None:
            return None
        for line, times in part.items():
            sums[line] = OutsideOps(*map(sum, zip(sums.get(line, OutsideOps(0, 0)), times, strict=True)))
    return sums


@dataclass(frozen=True)
class Recorded:
    """Which optional facts this recording was asked for."""

    record_shapes: bool = False
    profile_memory: bool = False
    with_stack: bool = False
    with_flops: bool = False
    with_modules: bool = False
    with_python: bool = False


def flags_of_any(parts: list[Recorded]) -> Recorded:
    """The flags that were on in one part at least."""
    return Recorded(*map(any, zip(*map(astuple, parts), strict=True)))


#: When each step began, and its number.
StepStarts = tuple[tuple[Moment, int], ...]


class Unrecorded(NamedTuple):
    """The end of a window in which the program ran on and was not recorded, and why: the cause, then the remedy."""

    began_ns: Moment
    ended_ns: Moment
    reason: str


class ProcessFacts(NamedTuple):
    """One process's own values of the fields of a `Trace` that have these names."""

    recorded: Recorded = Recorded()
    began_ns: Moment = 0
    ended_ns: Moment = 0
    windows: tuple[tuple[Moment, Moment], ...] = ()
    unrecorded: tuple[Unrecorded, ...] = ()
    step_starts: StepStarts = ()
    label: str = ""
    hooks: tuple[str, ...] = ()
    lines_note: str = ""
    notes: tuple[str, ...] = ()
    dropped: int = 0
    dropped_exactly: bool = True
    is_partial: bool = False
    overhead_ns: int = -1
    own_ns: int = 0
    between_ops_ns: int = 0
    #: Pairs of the mapping of that name; None where it is None.
    outside: tuple[tuple[SourceLine, OutsideOps], ...] | None = None
