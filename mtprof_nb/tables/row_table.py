"""Base classes of the tables of a recording: a list of rows that is shown as a table, and given as data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, overload

from mtprof_nb.tables.table import Table, TableColumn
from mtprof_nb.tables.writers.as_dataframe import as_dataframe
from mtprof_nb.tables.writers.as_html import as_html
from mtprof_nb.tables.writers.as_json import as_json
from mtprof_nb.tables.writers.as_text import as_text

if TYPE_CHECKING:
    import pandas as pd

#: Rows that are shown where nobody asked for a number.
_MOST_ROWS = 30


class Tabular:
    """An answer that is a table of data."""

    __slots__ = ()

    def facts(self) -> Table:
        """The data: a column for each fact."""
        raise NotImplementedError

    def to_dataframe(self) -> pd.DataFrame:
        """A pandas DataFrame with a column for each fact; times are in nanoseconds. Needs pandas."""
        return as_dataframe(self.facts())

    def to_json(self) -> str:
        """A JSON text: a list of records under the names of `to_dataframe()`; null for what is not known."""
        return as_json(self.facts())


class SourceRow(Protocol):
    """A row for a part of the source. `file` is "" in the row for costs that belong to no part."""

    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int: ...


Row = TypeVar("Row")
Source = TypeVar("Source", bound=SourceRow)


class RowTable(Tabular, Sequence[Row]):
    """Rows that cannot be changed."""

    #: Attributes of a row that are its data.
    _facts: Sequence[str]
    #: The text in place of a table without rows.
    _nothing: ClassVar[str] = "no rows"

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = list(rows)

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        return self._rows[index]

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def content(self) -> Table:
        """All rows, as they are shown."""
        raise NotImplementedError

    def facts(self) -> Table:
        """The data: a column for each attribute of a row."""
        return facts_of(self._rows, self._facts)

    def table(self, row_limit: int | None = 100) -> str:
        """The rows as aligned text. A negative `row_limit`, or None, shows all rows."""
        return self._written(self.content(), row_limit)

    def __repr__(self) -> str:
        return self.table(row_limit=_MOST_ROWS)

    def _repr_html_(self) -> str:
        return as_html(self._or_nothing(self.content()).first(_MOST_ROWS, self._noun))

    def _written(self, content: Table, row_limit: int | None) -> str:
        return f"{as_text(self._or_nothing(content).first(row_limit, self._noun))}\n"

    def _or_nothing(self, content: Table) -> Table:
        """`content`, or without rows the sentence for that, and the notes."""
        return content if self._rows else Table((), (), content.notes, self._nothing)

    @property
    def _noun(self) -> str:
        return "row"


class SourceTable(RowTable[Source]):
    """Rows of source code with their costs, and the keys that they can be sorted by."""

    #: Keys that are sorted from the smallest on; all others, costs, from the largest on.
    _location_keys: ClassVar[Sequence[str]]
    _cost_keys: ClassVar[Sequence[str]]
    #: The cost that rows are sorted by unless another one is asked for.
    _sort_key: ClassVar[str]
    #: The cost that orders rows that are equal in the sort key.
    _tie_key: ClassVar[str]

    def __init__(self, rows: list[Source]) -> None:
        super().__init__(self.sorted_rows(rows, self._sort_key))

    @classmethod
    def sorted_rows(cls, rows: list[Source], key: str) -> list[Source]:
        """The rows by `key`, the one that belongs to no part of the source last.

        `AttributeError` for an unknown key.
        """
        if key in cls._location_keys:
            return sorted(rows, key=lambda row: (row.file == "", getattr(row, key), row.file, row.line))
        if key not in cls._cost_keys:
            known = ", ".join((*cls._location_keys, *cls._cost_keys))
            msg = f"unknown sort key {key!r}: use one of {known}"
            raise AttributeError(msg)

        def rank(row: Source) -> tuple[Any, ...]:
            costs = [-(getattr(row, cost) or 0) for cost in (key, cls._tie_key)]
            return row.file == "", *costs, row.file, row.line

        return sorted(rows, key=rank)

    def content(self, sort_by: str | None = None) -> Table:
        """All rows by `sort_by`, as they are shown."""
        return self._content(self.sorted_rows(self._rows, sort_by or self._sort_key))

    def _content(self, rows: list[Source]) -> Table:
        raise NotImplementedError

    def table(self, sort_by: str | None = None, row_limit: int | None = 100) -> str:  # type: ignore[override]
        """The rows as aligned text, the largest `sort_by` first. A negative `row_limit`, or None, shows all rows."""
        return self._written(self.content(sort_by), row_limit)

    @property
    def _noun(self) -> str:
        return type(self).__name__.lower().removesuffix("s")


def facts_of(rows: Iterable[Any], names: Iterable[str]) -> Table:
    """A table of the attributes `names` of objects."""
    columns = [TableColumn(name) for name in names]
    return Table(columns, [[getattr(row, column.key) for column in columns] for row in rows])
