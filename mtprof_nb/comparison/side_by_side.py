"""Both versions of a file, or of a function that was replaced, side by side where they differ."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mtprof_nb.comparison.joined_rows import EDITED, GONE, NEW
from mtprof_nb.comparison.line_pairs import paired_files, paired_numbers, similarity
from mtprof_nb.comparison.program_lines import ProgramLines, programs
from mtprof_nb.comparison.sides import Sides
from mtprof_nb.model.trace import SourceLine

#: Unchanged lines that are shown around changed ones.
_AROUND = 3
_MOST_ROWS = 1_500
_NO_PROGRAM = "%%mtprofile"
_HEAD = re.compile(r"\s*(?:async\s+)?def\s+(\w+)")


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
    #: Whether the other side has a version of the file.
    is_known: bool = True

    @property
    def function(self) -> str:
        """The name of the function that the part is, "" for another part."""
        head = _HEAD.match(self.lines[0]) if self.lines else None
        return head[1] if head else ""

    def version(self, position: int) -> Version:
        number = self.skipped + position + 1
        return Version(number, self.lines[position], self.ns.get(SourceLine(self.file, number)))


def side_by_side(sides: Sides) -> list[Versions]:
    """The files whose text differs, and functions of other files that ran on one side each; empty without lines."""
    both = programs(sides)
    if both is None:
        return []
    versions, left = [], _MOST_ROWS
    for a, b in _texts(both.a, both.b, sides):
        rows = _around_changes(list(_aligned(a, b)))[:left]
        left -= len(rows)
        if rows:
            a_title, b_title = (side.title(text.file) * bool(text.lines) for side, text in ((both.a, a), (both.b, b)))
            versions.append(Versions(a_title, b_title, tuple(rows)))
    return versions


def _texts(a: ProgramLines, b: ProgramLines, sides: Sides) -> Iterator[tuple[_Text, _Text]]:
    a_texts, b_texts = (
        {file: _Text(file, 0, lines, ns) for file, lines in side.files.items()}
        for side, ns in ((a, a.times(sides)), (b, b.times(sides)))
    )
    pairs = paired_files(a.files, b.files)
    parts: tuple[list[_Text], list[_Text]] = [], []
    for a_file, b_file in pairs.items():
        texts = a_texts.pop(a_file), b_texts.pop(b_file)
        if list(texts[0].lines) != list(texts[1].lines):
            yield texts
            continue
        a_lines, b_lines = map(_ran, texts)
        parts[0].extend(_parts(texts[0], a_lines, b_lines))
        parts[1].extend(_parts(texts[1], b_lines, a_lines))
    for of_side, alone in zip(parts, (a_texts, b_texts), strict=True):
        of_side.extend(
            part for text in alone.values() for part in _parts(text._replace(is_known=False), _ran(text), set())
        )
    yield from _paired(*parts)


def _ran(text: _Text) -> set[int]:
    """The numbers of the lines that ran."""
    return {line.line for line in text.ns if line.file == text.file}


def _paired(a_parts: list[_Text], b_parts: list[_Text]) -> Iterator[tuple[_Text, _Text]]:
    """Parts that ran on one side each: two functions of one name, similar ones, or two of one file.

    Another part is new or gone if the other side has no version of its file, and else was not called there.
    """
    rules: list[Callable[[_Text, _Text], bool]] = [
        lambda a, b: a.function == b.function != "",
        lambda a, b: similarity(a.lines, b.lines) > 0,
        lambda a, b: a.file == b.file,
    ]
    for rule in rules:
        for a in list(a_parts):
            others = [b for b in b_parts if rule(a, b)]
            if others:
                b = max(others, key=lambda other: similarity(a.lines, other.lines))
                a_parts.remove(a)
                b_parts.remove(b)
                yield a, b
    yield from ((a, a._replace(lines=())) for a in a_parts if not a.is_known)
    yield from ((b._replace(lines=()), b) for b in b_parts if not b.is_known)


def _parts(text: _Text, numbers: set[int], others: set[int]) -> Iterator[_Text]:
    """The functions around the lines `numbers` of which none is in `others`; the lines outside functions together."""
    by_head: dict[int | None, set[int]] = {}
    for number in sorted(numbers):
        by_head.setdefault(_head(text.lines, number - 1), set()).add(number)
    called = {_head(text.lines, number - 1) for number in others} - {None}
    for head, inside in by_head.items():
        if head not in called and inside - others:
            yield _part(text, head, inside - others)


def _part(text: _Text, head: int | None, numbers: set[int]) -> _Text:
    """The function that begins at `head` and has the lines `numbers`, or without one these lines and those between."""
    first, last = min(numbers) - 1, max(numbers)
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
            if _HEAD.match(lines[outer]):
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
    """The rows near a change of the program, which flags of `%%mtprofile` are not; None where rows are left out."""
    texts = [(row.a or row.b or Version(0, "", None)).text.strip() for row in rows]
    changed = [at for at, text in enumerate(texts) if rows[at].change and text and not text.startswith(_NO_PROGRAM)]
    near = sorted(
        {other for at in changed for other in range(at - _AROUND, at + _AROUND + 1) if 0 <= other < len(rows)}
    )
    kept: list[Row | None] = []
    for position, at in enumerate(near):
        if position and at != near[position - 1] + 1:
            kept.append(None)
        kept.append(rows[at])
    return kept
