"""Lines that allocated blocks of memory."""

from __future__ import annotations

from mtprof_nb.analysis.groups import sums
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.model.trace import Allocations, Int64, SourceLine, Trace


def line_of_most(trace: Trace, records: Allocations, rows: Int64) -> tuple[SourceLine | None, int]:
    """The line that allocated the most bytes of the blocks at `rows`, and those bytes; None and 0 if none is known."""
    caused = attribution(trace)
    rows = rows[records.event[rows] >= 0]
    line = caused.line[records.event[rows]]
    held = sums(line[line >= 0], records.nbytes[rows[line >= 0]], len(caused.lines))
    return (caused.lines[int(held.argmax())], int(held.max())) if held.any() else (None, 0)
