"""Columns that grow part by part, and numbers of distinct values."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain, count
from typing import Any

import numpy as np
import numpy.typing as npt

from mtprof_nb.model.schema import Columns, Int32, Int64

_NEVER = object()
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


def _hashable(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_hashable, value))
    return value if isinstance(value, Hashable) else str(value)


class Numbering(defaultdict[Any, int]):
    """Distinct values, numbered in the order in which they come; those with one `counter` share no number."""

    def __init__(self, counter: Iterator[int] | None = None) -> None:
        super().__init__((counter or count()).__next__)

    def positions(self, values: Sequence[Any], *, absent: Any = _NEVER) -> Int32:
        """The position of each value, -1 for `absent`; a value that cannot be a key is taken by its text."""
        try:
            positions = np.fromiter(map(self.__getitem__, values), np.int32, len(values))
        except TypeError:
            positions = np.array([self[_hashable(value)] for value in values], np.int32)
        if absent in self:
            positions[positions == self[absent]] = -1
        return positions

    def positions_of_rows(self, first: Sequence[Any], *others: Iterable[Any]) -> Int32:
        """The position of the tuple of values in each row of some columns; `TypeError` if a value cannot be a key."""
        return np.fromiter(map(self.__getitem__, zip(first, *others, strict=True)), np.int32, len(first))


class GrowingColumns:
    """Columns by name, in parts, group by group. A part that lacks a column has -1 there."""

    def __init__(self) -> None:
        self._groups: dict[Any, list[tuple[int, Columns]]] = {}
        #: Names of the columns that some part has.
        self.names: set[str] = set()

    def add(self, rows: int, columns: Columns, group: Any = None) -> None:
        """Add `rows` rows to a group, which mostly have the same columns. A column may be one value for all rows."""
        self._groups.setdefault(group, []).append((rows, columns))
        self.names.update(columns)

    def __len__(self) -> int:
        return sum(rows for parts in self._groups.values() for rows, _ in parts)

    def whole(self, name: str) -> npt.NDArray[Any]:
        """All rows of a column: those of the first group, then those of the next."""
        pieces, end = [], 0
        for rows, columns in chain.from_iterable(self._groups.values()):
            if name in columns:
                pieces.append((slice(end, end + rows), columns[name]))
            end += rows
        column = np.full(end, -1, np.result_type(*{piece.dtype for _, piece in pieces} or {np.int64}))
        for place, piece in pieces:
            column[place] = piece
        return column


def numbers(values: Sequence[Any]) -> Int64:
    """`values` as integers; -1 for a value that is no integer, or does not fit in 64 bits."""
    try:
        return np.frombuffer(struct.pack(f"{len(values)}q", *values), np.int64)
    except struct.error:  # another number than an integer, or a text
        pass
    try:
        return np.fromiter(values, np.int64, len(values))
    except (TypeError, ValueError, OverflowError):
        return np.array([_number(value) for value in values], np.int64)


def _number(value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return -1
    return number if _SMALLEST <= number <= _LARGEST else -1
