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


def summed(parts: list[Mapping[SourceLine, OutsideOps] | None]) -> dict[SourceLine, OutsideOps] | None:
    """The sums of each line over all parts; None where one does not know them."""
    found: dict[SourceLine, OutsideOps] = {}
    for part in parts:
        if part is None:
            return None
        for line, (own_ns, total_ns) in part.items():
            known = found.get(line, OutsideOps(0, 0))
            found[line] = OutsideOps(known.own_ns + own_ns, known.total_ns + total_ns)
    return found
