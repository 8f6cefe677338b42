"""Messages between a panel and its page: plain values as compressed JSON."""

from __future__ import annotations

import json
import zlib
from typing import Any

import numpy as np

from mtprof_nb.model.trace import Int64

#: A shorter column is not worth its differences.
_SHORTEST = 100


def packed(value: Any) -> bytes:
    """`value` as compressed JSON. Only ASCII, so that any text survives, halves of surrogate pairs included."""
    return zlib.compress(json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii"), 6)


def with_deltas(value: Any) -> Any:
    """`value` with `{"deltas": [...]}` in place of every column whose differences are shorter to write."""
    if isinstance(value, dict):
        return {key: with_deltas(part) for key, part in value.items()}
    return _shorter(value) if isinstance(value, list) and len(value) >= _SHORTEST else value


def _shorter(column: list[Any]) -> Any:
    whole: Int64 | None = np.array(column) if type(column[0]) is int else None
    if whole is None or whole.dtype != np.int64:
        return column
    deltas = np.diff(whole, prepend=0)
    return {"deltas": deltas.tolist()} if _digits(deltas) < 0.8 * _digits(whole) else column


def _digits(column: Int64) -> float:
    """About how many digits the numbers have together."""
    return float(np.log10(np.abs(column) + 1).sum()) + len(column) / 2
