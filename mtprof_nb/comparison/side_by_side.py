"""Both versions of a file side by side, where they differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mtprof_nb.comparison.joined_rows import EDITED, GONE, NEW
from mtprof_nb.comparison.line_pairs import paired_files, paired_numbers
from mtprof_nb.comparison.program_lines import ProgramLines, programs
from mtprof_nb.comparison.sides import Sides
from mtprof_nb.model.trace import SourceLine

#: Unchanged lines that are shown around changed ones.
_AROUND = 3
_MOST_ROWS = 1_500
_HEADS = ("def ", "async def ")


class Version(NamedTuple):
    """A line in one version: its number, its text with its indentation, and its time; None if it did not run."""

    number: int
    text: str
    ns: float | None


class Row(NamedTuple):
    """A line in both versions; None where one does not have it."""

    a: Version | None
    b: Version | None
    #: "new", "gone", "edited" or "".
    change: str


@dataclass(frozen=True)
class Versions:
    """Two versions of a file: their titles, and rows around the changes. None marks rows that are left out."""

    a_title: str
    b_title: str
    rows: tuple[Row | None, ...]


class _Text(NamedTuple):
    """A part of a file: the lines after the first `skipped` ones."""

    file: str
    skipped: int
    lines: Sequence[str]
    ns: Mapping[SourceLine, float]

    def version(self, position: int) -> Version:
        number = self.skipped + position + 1
        return Version(number, self.lines[position], self.ns.get(SourceLine(self.file, number)))


def side_by_side(sides: Sides) -> list[Versions]:
    """The files whose text differs, and functions of one file that ran on one side each; empty without lines."""
    found = programs(sides)
    if found is None:
        return []
    versions, left = [], _MOST_ROWS
    for a, b in _texts(found.a, found.b, sides):
        rows = _around_changes(list(_aligned(a, b)))[:left]
        left -= len(rows)
        if rows:
            versions.append(Versions(found.a.title(a.file), found.b.title(b.file), tuple(rows)))
    return versions


def _texts(a: ProgramLines, b: ProgramLines, sides: Sides) -> Iterator[tuple[_Text, _Text]]:
    a_ns, b_ns = a.times(sides), b.times(sides)
    for a_file, b_file in paired_files(a.files, b.files).items():
        texts = _Text(a_file, 0, a.files[a_file], a_ns), _Text(b_file, 0, b.files[b_file], b_ns)
        yield texts if list(texts[0].lines) != list(texts[1].lines) else _parts_that_ran(*texts)


def _parts_that_ran(a: _Text, b: _Text) -> tuple[_Text, _Text]:
    """The functions of one file that ran on one side only, such as two that were compared; else the whole file."""
    a_lines, b_lines = ({line.line for line in text.ns if line.file == text.file} for text in (a, b))
    if not a_lines - b_lines or not b_lines - a_lines:
        return a, b
    return _part(a, a_lines - b_lines), _part(b, b_lines - a_lines)


def _part(text: _Text, numbers: set[int]) -> _Text:
    """The function around the lines `numbers`, or without one these lines and those between."""
    first, last = min(numbers) - 1, max(numbers)
    head = _head(text.lines, first)
    if head is None:
        return text._replace(skipped=first, lines=text.lines[first:last])
    body = _indent(text.lines[head])
    end = next((at for at in range(last, len(text.lines)) if _indent(text.lines[at]) <= body), len(text.lines))
    return text._replace(skipped=head, lines=text.lines[head:end])


def _head(lines: Sequence[str], at: int) -> int | None:
    """The position of the head of the function around a line, None at the level of a module."""
    indent = _indent(lines[at])
    for outer in range(at - 1, -1, -1):
        if _indent(lines[outer]) < indent:
            if lines[outer].lstrip().startswith(_HEADS):
                return outer
            indent = _indent(lines[outer])
    return None


def _indent(line: str) -> float:
    """Spaces before the text of a line; an empty line belongs to what is around it."""
    return len(line) - len(line.lstrip()) if line.strip() else math.inf


def _aligned(a: _Text, b: _Text) -> Iterator[Row]:
    """All rows in order: gone lines before new ones, then the pair that follows them."""
    a_at = b_at = 0
    pairs = [(one - 1, other - 1) for one, other in paired_numbers(a.lines, b.lines).items()]
    for a_next, b_next in [*pairs, (len(a.lines), len(b.lines))]:
        yield from (Row(a.version(at), None, GONE) for at in range(a_at, a_next))
        yield from (Row(None, b.version(at), NEW) for at in range(b_at, b_next))
        if a_next < len(a.lines) and b_next < len(b.lines):
            is_edited = a.lines[a_next].strip() != b.lines[b_next].strip()
            yield Row(a.version(a_next), b.version(b_next), EDITED if is_edited else "")
        a_at, b_at = a_next + 1, b_next + 1


def _around_changes(rows: Sequence[Row]) -> list[Row | None]:
    """The rows near a change of a line that is not empty; None where rows are left out in between."""
    changed = [
        at for at, row in enumerate(rows) if row.change and (row.a or row.b or Version(0, "", None)).text.strip()
    ]
    near = sorted(
        {other for at in changed for other in range(at - _AROUND, at + _AROUND + 1) if 0 <= other < len(rows)}
    )
    kept: list[Row | None] = []
    for position, at in enumerate(near):
        if position and at != near[position - 1] + 1:
            kept.append(None)
        kept.append(rows[at])
    return kept
