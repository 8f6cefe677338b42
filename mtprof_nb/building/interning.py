"""Tables of distinct values, positions in them of many, and rows found by their number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any, TypeVar

import numpy as np

from mtprof_nb.model.trace import Bool, Int32, Int64

T = TypeVar("T")
#: Numbers that have no more gaps than this are looked up in a table of all of them.
_DENSE = 4


def intern(values: Sequence[Any]) -> tuple[Int32, tuple[Any, ...]]:
    """Positions into the table of distinct values, in order of first appearance; None becomes -1."""
    table = dict.fromkeys(values)
    table.pop(None, None)
    position = {value: index for index, value in enumerate(table)}
    position[None] = -1
    return np.fromiter(map(position.__getitem__, values), np.int32, len(values)), tuple(table)


def used_part(position: Int32, table: Sequence[T]) -> tuple[Int32, tuple[T, ...]]:
    """`position` and `table` without the entries that no position names; -1 stays."""
    is_used = np.bincount(position[position >= 0], minlength=len(table)) > 0
    if is_used.all():
        return position, tuple(table)
    moved = np.append(np.cumsum(is_used, dtype=np.int32) - 1, np.int32(-1))
    return moved[position], tuple(compress(table, is_used.tolist()))


def distinct_objects(objects: Sequence[T]) -> tuple[Int64, list[T]]:
    """For each object its position in the list that follows, which has each one once, by identity."""
    if not objects:
        return np.empty(0, np.int64), []
    identity = np.fromiter(map(id, objects), np.int64, len(objects))
    _, first, inverse = np.unique(identity, return_index=True, return_inverse=True)
    by_appearance = np.argsort(first)
    rank = np.empty_like(by_appearance)
    rank[by_appearance] = np.arange(len(by_appearance))
    return rank[inverse], [objects[index] for index in first[by_appearance].tolist()]


def describe(raw: Sequence[Any], read: Callable[[Any], Any]) -> tuple[Int32, tuple[Any, ...]]:
    """For each object the position of its `read` value in the table that follows; -1 where that is None."""
    position, objects = distinct_objects(raw)
    described, table = intern([read(one) for one in objects])
    return described[position], table


def first_with_number(numbers: Int64, among: Int64, wanted: Int64, has_one: Bool) -> Int32:
    """For each row of `has_one`, the first of the rows `among` whose number is the one `wanted`, or -1."""
    row_with = np.full(len(numbers), -1, np.int32)
    if not len(among):
        return row_with
    own, asking = numbers[among], np.flatnonzero(has_one)
    first, last = int(own.min()), int(own.max())
    if last - first < _DENSE * len(numbers):
        row_of = np.full(last - first + 1, -1, np.int32)
        # Of several rows with one number, the first is written last.
        row_of[own[::-1] - first] = among[::-1]
        asking = asking[(wanted[asking] >= first) & (wanted[asking] <= last)]
        row_with[asking] = row_of[wanted[asking] - first]
        return row_with
    among = among[np.argsort(own, kind="stable")]
    slot = np.minimum(np.searchsorted(numbers[among], wanted[asking]), len(among) - 1)
    there = numbers[among[slot]] == wanted[asking]
    row_with[asking[there]] = among[slot[there]]
    return row_with
