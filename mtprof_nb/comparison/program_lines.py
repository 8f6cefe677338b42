"""The source lines of both programs, and which of them are the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mtprof_nb.analysis.groups import stable_names
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.comparison.line_pairs import Files, paired_lines
from mtprof_nb.comparison.sides import Side, Sides, has_lines
from mtprof_nb.model.source_files import is_cell
from mtprof_nb.model.trace import SourceLine, Trace
from mtprof_nb.tables.line_table import LineRow, Lines, source_lines

#: The lines of one run that ran, by file and number. A cell has the same file name in each session.
Rows = Mapping[SourceLine, LineRow]


class ProgramLines:
    """The lines of one side that ran, and the texts of their files."""

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
            new = {name: source_lines(run, file) for name, file in names.items() if name not in texts}
            texts |= {name: text for name, text in new.items() if text}
        return texts

    def title(self, file: str) -> str:
        """The file as tables show it."""
        return next((where(row) for line, row in self.first.items() if line.file == file), file)

    def times(self, sides: Sides) -> dict[SourceLine, float]:
        """Nanoseconds of each line: the median of its runs, of one step where steps are compared."""
        return {
            line: float(
                np.median([rows[line].time_ns / sides.divisor(run) if line in rows else 0.0 for run, rows in self.runs])
            )
            for line in self.first
        }


class Programs(NamedTuple):
    """Both programs, and for lines of a the same line of b, if both ran."""

    a: ProgramLines
    b: ProgramLines
    b_of_a: dict[SourceLine, SourceLine]


def programs(sides: Sides) -> Programs | None:
    """The lines of both sides; None where a run has no lines."""
    if not sides.have(has_lines):
        return None
    a, b = ProgramLines(sides.a), ProgramLines(sides.b)
    pairs = paired_lines(a.files, b.files, set(a.first), set(b.first))
    return Programs(a, b, {line: other for line, other in pairs.items() if line in a.first and other in b.first})


def where(row: LineRow) -> str:
    """The file of a line as tables show it; a cell of another session has no number here."""
    return "cell" if is_cell(row.file) and not row.where.startswith("Cell [") else row.where


@once_a_trace
def _without_samples(run: Trace) -> Trace:
    """The recording with the time of lines as marks measured it: samples find other lines in each run."""
    return replace(run, samples=None)


def _rows(run: Trace) -> Rows:
    names = stable_names(run)
    # A line without either only called others.
    own = (row for row in Lines(run if run.samples is None else _without_samples(run)) if row.time_ns or row.count)
    return {SourceLine(names.get(row.file, row.file), row.line): row for row in own}
