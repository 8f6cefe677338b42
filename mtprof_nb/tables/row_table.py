"""`RowTable`: rows of source code with their costs, read as a list, sorted, and as aligned text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol, TypeVar

from mtprof_nb.errors import shortened
from mtprof_nb.tables.row_list import RowList
from mtprof_nb.tables.text_table import aligned


class SourceRow(Protocol):
    """A row for a part of the source. `file` is "" in the row for costs that belong to no part."""

    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int: ...


Row = TypeVar("Row", bound=SourceRow)


class RowTable(RowList[Row]):
    """A list of rows, with the keys that they can be sorted by."""

    #: Keys that are sorted from the smallest on; all others, costs, from the largest on.
    _location_keys: ClassVar[Sequence[str]]
    _cost_keys: ClassVar[Sequence[str]]
    #: The cost that orders rows of which another cost is equal.
    _tie_key: ClassVar[str]

    def __init__(self, rows: list[Row]) -> None:
        super().__init__(self.sorted_rows(rows, self._cost_keys[0]))

    @classmethod
    def sorted_rows(cls, rows: list[Row], key: str) -> list[Row]:
        """The rows by `key`; the one that belongs to no part of the source is last. `AttributeError` otherwise."""
        if key in cls._location_keys:
            return sorted(rows, key=lambda row: (row.file == "", getattr(row, key), row.file, row.line))
        if key not in cls._cost_keys:
            msg = f"unknown sort key {key!r}: use one of {', '.join((*cls._location_keys, *cls._cost_keys))}"
            raise AttributeError(msg)
        costs = (key, cls._tie_key)
        return sorted(
            rows,
            key=lambda row: (row.file == "", *(-(getattr(row, cost) or 0) for cost in costs), row.file, row.line),
        )

    def _shown(self, sort_by: str, row_limit: int | None) -> tuple[list[Row], list[str]]:
        """The rows of a table, and a line that says how many there are, if some are left out."""
        rows = self.sorted_rows(self._rows, sort_by)
        if row_limit is None or row_limit < 0 or row_limit >= len(rows):
            return rows, []
        return rows[:row_limit], [f"showing {row_limit} of {len(rows)} {type(self).__name__.lower()}"]


def ruled(cells: list[list[str]]) -> list[str]:
    """Lines of a table between rules: titles first; two columns on the left, numbers on the right."""
    cells = [list(map(shortened, row)) for row in cells]
    texts = [line.rstrip() for line in aligned(cells, texts=(0, 1))]
    rule = "  ".join("-" * max(map(len, column)) for column in zip(*cells, strict=True))
    return [rule, texts[0], rule, *texts[1:], rule]
