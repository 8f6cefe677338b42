"""Lines, and the time that passed in each while no op ran."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


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
    """The sums of each line over all parts; None where one does not know them."""
    sums: dict[SourceLine, OutsideOps] = {}
    for part in parts:
        if part is None:
            return None
        for line, times in part.items():
            sums[line] = OutsideOps(*map(sum, zip(sums.get(line, OutsideOps(0, 0)), times, strict=True)))
    return sums
