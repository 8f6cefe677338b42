"""How values of several traces become one, for the annotations of `Trace`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def of_all(parts: list[Iterable[Any]]) -> tuple[Any, ...]:
    """The distinct entries of all parts, in the order in which they come."""
    return tuple(dict.fromkeys(entry for part in parts for entry in part))


def in_order(parts: list[Iterable[Any]]) -> tuple[Any, ...]:
    """The distinct entries of all parts, sorted."""
    return tuple(sorted({entry for part in parts for entry in part}))


def updated(parts: list[Mapping[Any, Any]]) -> dict[Any, Any]:
    """The entries of all parts; of one key, the last."""
    return {key: value for part in parts for key, value in part.items()}


def all_known(parts: list[int]) -> int:
    """The sum; -1 where one part is unknown."""
    return -1 if min(parts) < 0 else sum(parts)
