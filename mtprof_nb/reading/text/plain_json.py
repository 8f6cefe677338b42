"""JSON by the standard library: where msgspec is not installed, and for text that msgspec does not take."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from mtprof_nb.reading.text.event_records import MEMBERS, Batch, How, HowOf, Wanted

#: Members of `args` that have a column of their own, at most.
MOST_MEMBERS = 200


class PlainDecoder:
    """A `Decoder`."""

    def batches(self, text: bytes, how: HowOf, wanted: Wanted) -> list[Batch]:
        """The events of the text of a list. With `digits`, times are the numbers that stand there, exactly."""
        return batches_of(json.loads(text, parse_float=Decimal if wanted.digits else None), how)


def batches_of(entries: Iterable[Any], how: HowOf) -> list[Batch]:
    """Events by category; `ValueError` if an entry is no object."""
    by_category: dict[Any, tuple[list[int], list[dict[str, Any]]]] = {}
    for row, entry in enumerate(entries):
        if not isinstance(entry, dict):
            msg = "no object"
            raise ValueError(msg)
        category = entry.get("cat")
        rows, events = by_category.setdefault(category if isinstance(category, Hashable) else str(category), ([], []))
        rows.append(row)
        events.append(entry)
    return [_batch(category, rows, events, how) for category, (rows, events) in by_category.items()]


def _batch(category: Any, rows: list[int], events: Sequence[Mapping[str, Any]], how: HowOf) -> Batch:
    members = {key: [event.get(key, empty) for event in events] for key, empty in MEMBERS.items()}
    given = [event.get("args") for event in events]
    args = [one if isinstance(one, dict) else {} for one in given]
    bad = sum(one is not None and not isinstance(one, dict) for one in given)
    keys = list(dict.fromkeys(key for one in args for key in one))
    ways = {key: how(category, key) for key in keys}
    columns = {
        key: [_value(one[key], ways[key]) if key in one else ways[key].empty for one in args]
        for key in keys[:MOST_MEMBERS]
        if ways[key] is not How.SKIPPED
    }
    plain = {key: columns.pop(key) for key in keys[:MOST_MEMBERS] if ways[key] is How.PLAIN}
    further = set(keys[MOST_MEMBERS:])
    others = [{key: _value(one[key], How.PLAIN) for key in one if key in further} for one in args] if further else ()
    values = list(zip(*plain.values(), strict=True))
    return Batch(category, np.array(rows, np.int64), members, columns, tuple(plain), values, others, bad)


def _value(value: Any, how: How) -> Any:
    is_text = how is How.RAW or (how is How.PLAIN and isinstance(value, list | dict))
    return json.dumps(value, default=float).encode() if is_text else value
