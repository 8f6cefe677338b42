"""Source lines of both sides, joined by file and text."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial

from mtprof_nb.analysis.costs import counted_ops
from mtprof_nb.analysis.groups import stable_names
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.comparison.differences import self_ns_by_step
from mtprof_nb.comparison.joined_rows import EDITED, Difference, Item, Items, joined
from mtprof_nb.comparison.line_pairs import Files, paired_lines
from mtprof_nb.comparison.sides import Side, Sides, has_bytes, has_lines
from mtprof_nb.model.source_files import is_cell
from mtprof_nb.model.trace import Int64, SourceLine, Trace
from mtprof_nb.results.line_table import LineRow, Lines, source_lines

#: The lines of one run that ran, by file and number. A cell has the same file name in each session.
Rows = Mapping[SourceLine, LineRow]


def line_differences(sides: Sides) -> list[Difference]:
    """Lines that ran, the largest change of time first; empty where a run has no lines."""
    if not sides.have(has_lines):
        return []
    a, b, with_bytes = _Program(sides.a), _Program(sides.b), sides.have(has_bytes)
    pairs = paired_lines(a.files, b.files, set(a.first), set(b.first))
    both = {line: other for line, other in pairs.items() if line in a.first and other in b.first}
    # A line that b alone has may have the file and number of another one of a.
    keys = {line: ("b", line) for line in b.first} | {other: line for line, other in both.items()}
    texts = {keys[line]: _Line(None, row) for line, row in b.first.items()}
    texts |= {line: _Line(row, b.first.get(both[line]) if line in both else None) for line, row in a.first.items()}
    of_a: list[Items] = [{at: texts[at].item(run, row, with_bytes) for at, row in rows.items()} for run, rows in a.runs]
    of_b: list[Items] = [
        {keys[at]: texts[keys[at]].item(run, row, with_bytes) for at, row in rows.items()} for run, rows in b.runs
    ]
    return joined(sides, "line", of_a, of_b)


class _Program:
    """The lines of one side."""

    def __init__(self, side: Side) -> None:
        self.runs = [(run, _rows(run)) for run in side.runs]
        #: The row of each line in the first run that has it.
        self.first = {line: row for _, rows in reversed(self.runs) for line, row in rows.items()}

    @cached_property
    def files(self) -> Files:
        """The texts of the files with lines that ran."""
        texts: dict[str, list[str]] = {}
        for run, rows in self.runs:
            names = {line.file: row.file for line, row in rows.items() if row.file}
            found = {name: source_lines(run, file) for name, file in names.items() if name not in texts}
            texts |= {name: text for name, text in found.items() if text}
        return texts


class _Line:
    """One line in both programs."""

    def __init__(self, a: LineRow | None, b: LineRow | None) -> None:
        there = [row for row in (a, b) if row is not None]
        self._name = there[-1].source
        self._detail = " → ".join(dict.fromkeys(_place(row) for row in there if row.file))
        self._change = EDITED if len({row.source for row in there}) > 1 else ""

    def item(self, run: Trace, row: LineRow, with_bytes: bool) -> Item:
        """The values of the line in one run, where it has this row."""
        nbytes = row.allocated_bytes or 0 if with_bytes else None
        parts = partial(_steps, run, row)
        return Item(self._name, self._detail, row.count, row.time_ns, nbytes, self._change, parts)


def _rows(run: Trace) -> Rows:
    names = stable_names(run)
    # A line without either only called others.
    own = (row for row in Lines(run) if row.time_ns or row.count)
    return {SourceLine(names.get(row.file, row.file), row.line): row for row in own}


def _steps(run: Trace, row: LineRow) -> Int64:
    """Nanoseconds of the ops of a line in each step."""
    caused = attribution(run)
    line = SourceLine(row.file, row.line)
    number = caused.lines.index(line) if line in caused.lines else -1
    return self_ns_by_step(run, counted_ops(run) & (caused.line == number))


def _place(row: LineRow) -> str:
    # A cell of another session has no number here.
    is_foreign = is_cell(row.file) and not row.where.startswith("Cell [")
    return f"{'cell' if is_foreign else row.where}:{row.line}"
