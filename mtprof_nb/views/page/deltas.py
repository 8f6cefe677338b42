"""Columns as differences, where these take less space in a page."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtprof_nb.model.trace import Int64

#: A shorter column is not worth it.
_SHORTEST = 100


def with_deltas(value: Any) -> Any:
    """`value` with `{"deltas": [...]}` in place of every column whose differences are shorter to write."""
    if isinstance(value, dict):
        return {key: with_deltas(part) for key, part in value.items()}
    return _shorter(value) if isinstance(value, list) and len(value) >= _SHORTEST else value


def _shorter(column: list[Any]) -> Any:
    if not all(type(item) is int for item in column):
        return column
    whole = np.array(column, np.int64)
    deltas = np.diff(whole, prepend=0)
    return {"deltas": deltas.tolist()} if _digits(deltas) < 0.8 * _digits(whole) else column


def _digits(column: Int64) -> float:
    """About how many digits the numbers have together."""
    return float(np.log10(np.abs(column) + 1).sum()) + len(column) / 2
