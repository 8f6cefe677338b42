"""Times of source lines on both sides, joined by file and text."""

from __future__ import annotations

from functools import partial

from mtprof_nb.analysis.costs import counted_ops, op_costs
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.comparison.differences import parts_of
from mtprof_nb.comparison.joined_rows import EDITED, Difference, Item, Items, joined
from mtprof_nb.comparison.program_lines import programs, where
from mtprof_nb.comparison.sides import Sides, has_bytes
from mtprof_nb.model.trace import Int64, SourceLine, Trace
from mtprof_nb.tables.line_table import LineRow


def line_differences(sides: Sides) -> list[Difference]:
    """Lines that ran, the largest change of time first; empty where a run has no lines."""
    found = programs(sides)
    if found is None:
        return []
    (a, b, both), with_bytes = found, sides.have(has_bytes)
    # A line that b alone has may have the file and number of another one of a.
    keys = {line: ("b", line) for line in b.first} | {other: line for line, other in both.items()}
    texts = {keys[line]: _Line(None, row) for line, row in b.first.items()}
    texts |= {line: _Line(row, b.first.get(both[line]) if line in both else None) for line, row in a.first.items()}
    of_a: list[Items] = [
        {at: texts[at].item(sides, run, row, with_bytes) for at, row in rows.items()} for run, rows in a.runs
    ]
    of_b: list[Items] = [
        {keys[at]: texts[keys[at]].item(sides, run, row, with_bytes) for at, row in rows.items()}
        for run, rows in b.runs
    ]
    return joined(sides, "line", of_a, of_b)


class _Line:
    """One line in both programs."""

    def __init__(self, a: LineRow | None, b: LineRow | None) -> None:
        there = [row for row in (a, b) if row is not None]
        self._name = there[-1].source or f"{where(there[-1])}:{there[-1].line}"
        self._detail = " → ".join(dict.fromkeys(f"{where(row)}:{row.line}" for row in there if row.file))
        self._change = EDITED if len({row.source for row in there}) > 1 else ""

    def item(self, sides: Sides, run: Trace, row: LineRow, with_bytes: bool) -> Item:
        """The values of the line in one run, where it has this row."""
        nbytes = row.allocated_bytes or 0 if with_bytes else None
        parts = partial(_parts, sides, run, row)
        return Item(self._name, self._detail, row.count, row.time_ns, nbytes, self._change, parts)


def _parts(sides: Sides, run: Trace, row: LineRow) -> Int64:
    caused = attribution(run)
    line = SourceLine(row.file, row.line)
    number = caused.lines.index(line) if line in caused.lines else -1
    return parts_of(sides, run, op_costs(run).self_ns, counted_ops(run) & (caused.line == number))
