"""`Table`: columns and rows of values. `tables.writers` has a writer for each format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from mtprof_nb.analysis import units

#: A cell without a value.
MISSING = "–"
#: Units of columns that are on the left; `code` is also set apart from text, and `words` are sentences or titles.
TEXTS = ("words", "code")
#: The unit of a column that only HTML shows: its values are pairs of characters and their colour.
MARK = "mark"
WRITERS: dict[str, Callable[[Any], str]] = {
    **units.WRITERS,
    "part": units.duration,
    "share": lambda part_and_whole: units.share(*part_and_whole),
    "change": lambda ns: f"{'+' if ns > 0 else ''}{units.duration(ns)}",
    "ratio": units.ratio,
    "number": units.three_digits,
}


class TableColumn(NamedTuple):
    """A column of a table: its key, title, unit and meaning. Of a column without a title, only the data have values."""

    key: str
    title: str = ""
    unit: str = "words"
    meaning: str = ""
    #: Of a column of shares, the column whose shares they are.
    of: str = ""


@dataclass(frozen=True, eq=False)
class Table:
    """A value for each column of each row; sentences before and after the rows."""

    columns: Sequence[TableColumn]
    rows: Sequence[Sequence[Any]]
    #: Sentences after the rows.
    notes: tuple[str, ...] = ()
    #: A sentence before the rows.
    sentence: str = ""

    def only(self, *keys: str) -> Table:
        """The columns of these keys, as far as the table has them, in this order."""
        places = {column.key: place for place, column in enumerate(self.columns)}
        chosen = [places[key] for key in keys if key in places]
        rows = [[row[place] for place in chosen] for row in self.rows]
        return replace(self, columns=[self.columns[place] for place in chosen], rows=rows)

    def first(self, limit: int | None, noun: str = "row") -> Table:
        """The first rows, and a note if some are left out. A negative `limit`, or None, keeps all."""
        if limit is None or limit < 0 or limit >= len(self.rows):
            return self
        note = f"showing {units.number(limit)} of {units.plural(len(self.rows), noun)}"
        return replace(self, rows=self.rows[:limit], notes=(note, *self.notes))

    def plain(self) -> Table:
        """The columns that are no marks."""
        return self.only(*(column.key for column in self.columns if column.unit != MARK))

    def texts(self) -> list[list[str]]:
        """The cells of each row as text."""
        return [[cell_text(*cell) for cell in zip(self.columns, row, strict=True)] for row in self.rows]

    def turned(self) -> Table:
        """A row for each column, and a column for each row, whose title is the row's first value."""
        first, *others = zip((column.title for column in self.columns), *self.texts(), strict=True)
        columns = [TableColumn("title", "", "words")]
        columns += [TableColumn(f"row {number}", title, "text") for number, title in enumerate(first[1:])]
        return replace(self, columns=columns, rows=others)


def table_of(
    columns: Iterable[TableColumn],
    rows: Sequence[Any],
    made: Callable[[Any], Mapping[str, Any]] = lambda _: {},
    **sentences: Any,
) -> Table:
    """A table of objects: each value is one of `made(row)`, or the attribute of the column's key.

    A column in which no row has a value is left out.
    """
    columns, values = list(columns), [made(row) for row in rows]
    cells = [
        [value[column.key] if column.key in value else getattr(row, column.key) for column in columns]
        for row, value in zip(rows, values, strict=True)
    ]
    filled = [
        column.key for place, column in enumerate(columns) if not cells or any(row[place] is not None for row in cells)
    ]
    return Table(columns, cells, **sentences).only(*filled)


def cell_text(column: TableColumn, value: Any) -> str:
    """A value as text; a pair of a part and its whole has its share behind it."""
    if value is None:
        return "" if column.unit in TEXTS else MISSING
    if isinstance(value, str):
        return value
    if isinstance(value, tuple) and column.unit != "share":
        return f"{WRITERS[column.unit](value[0])} ({units.share(*value)})"
    return WRITERS[column.unit](value)
