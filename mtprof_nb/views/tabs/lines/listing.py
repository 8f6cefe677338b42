"""Source text with costs: the cells and files of a trace, the longest first, with the lines around each cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mtprof_nb.model.source_files import source_location
from mtprof_nb.model.trace import Trace
from mtprof_nb.tables.line_table import LineRow, Lines, source_lines

#: Up to this many lines from the first line with a cost to the last, all are listed.
WHOLE_LINES = 40
#: Lines that are listed before and after lines with a cost.
AROUND = 3
#: The most lines of a listing, over all files.
MOST_LINES = 1_500


@dataclass(frozen=True)
class ListedLine:
    """One line of source. `row` is its cost; None for a line without a known cost."""

    number: int
    text: str
    row: LineRow | None


@dataclass(frozen=True)
class ListedFile:
    """A cell or file: its title, the costs of its lines together, and its lines; None marks omitted lines."""

    file: str
    title: str
    self_ns: int
    outside_ns: int
    lines: tuple[ListedLine | None, ...]


def listed_files(trace: Trace) -> list[ListedFile]:
    """Every cell and file with a cost, the longest first, up to `MOST_LINES` lines."""
    by_file: dict[str, list[LineRow]] = {}
    for row in Lines(trace):
        if row.file:
            by_file.setdefault(row.file, []).append(row)
    files = sorted(by_file, key=lambda file: (-sum(row.time_ns for row in by_file[file]), file))
    listed, left = [], MOST_LINES
    for file in files:
        if left <= 0:
            break
        one = _listed(trace, file, by_file[file], left)
        listed.append(one)
        left -= len(one.lines)
    return listed


def _listed(trace: Trace, file: str, rows: list[LineRow], most: int) -> ListedFile:
    texts = dict(enumerate(source_lines(trace, file), 1))
    cost = {row.line: row for row in rows}
    first, last = min(cost), max(cost)
    costly = list(range(first, last + 1)) if texts and last - first < WHOLE_LINES else sorted(cost)
    written = max((number for number, line in texts.items() if line.strip()), default=0)
    numbers = list(_near(costly, max(written, last))) if texts else costly
    lines = tuple(
        None if number is None else ListedLine(number, texts.get(number) or _source(cost, number), cost.get(number))
        for number in numbers[:most]
    )
    title = source_location(trace, file, 0).removesuffix(":0")
    self_ns, outside_ns = sum(row.self_ns for row in rows), sum(row.outside_ns or 0 for row in rows)
    return ListedFile(file, title, self_ns, outside_ns, lines)


def _source(cost: dict[int, LineRow], number: int) -> str:
    """The function of a line whose text is not available."""
    return cost[number].source if number in cost else ""


def _near(costly: list[int], last: int) -> Iterator[int | None]:
    """Numbers of the lines around those with a cost, and None where lines are omitted."""
    shown = 0
    for number in costly:
        first = max(shown + 1, number - AROUND)
        if first > shown + 1:
            yield None
        yield from range(first, min(number + AROUND, last) + 1)
        shown = max(shown, min(number + AROUND, last))
    if shown < last:
        yield None
