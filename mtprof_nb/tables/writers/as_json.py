"""A table as JSON: a list of records."""

from __future__ import annotations

import json
import math
from typing import Any

from mtprof_nb.tables.table import Table


def as_json(table: Table) -> str:
    """A JSON text: a list with an object for each row, by the keys of the columns. What is not known is null."""
    keys = [column.key for column in table.columns]
    records = [dict(zip(keys, map(_plain, row), strict=True)) for row in table.rows]
    return json.dumps(records, allow_nan=False)


def _plain(value: Any) -> Any:
    """Numbers of numpy as Python's, NaN and infinity as None, lists and mappings likewise; other objects as text."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value if value is None or isinstance(value, str | int) else str(value)
