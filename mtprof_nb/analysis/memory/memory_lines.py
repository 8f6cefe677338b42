"""Lines that allocated blocks of memory."""

from __future__ import annotations

import numpy as np

from mtprof_nb.analysis.groups import sums
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.model.trace import Allocations, Int32, Int64, SourceLine, Trace


def lines_of_records(trace: Trace, records: Allocations) -> Int32:
    """For each allocator record the line that caused it, as a position in `Attribution.lines`; -1 if none is known."""
    caused = attribution(trace)
    by_event = np.append(caused.line, np.int32(-1))[records.event]
    return np.where(caused.allocation_line >= 0, caused.allocation_line, by_event)


def line_of_most(trace: Trace, records: Allocations, rows: Int64) -> tuple[SourceLine | None, int]:
    """The line that allocated the most bytes of the blocks at `rows`, and those bytes; None and 0 if none is known."""
    caused, line = attribution(trace), lines_of_records(trace, records)[rows]
    held = sums(line[line >= 0], records.nbytes[rows[line >= 0]], len(caused.lines))
    return (caused.lines[int(held.argmax())], int(held.max())) if held.any() else (None, 0)
