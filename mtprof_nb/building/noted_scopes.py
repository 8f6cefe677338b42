"""Scopes whose inputs a hook notes itself, for the runtime leaves them out of its recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from mtprof_nb.model.input_values import plain, to_text
from mtprof_nb.model.trace import SCOPE, Columns, Int64


class Input(NamedTuple):
    """One positional input as Kineto describes it."""

    shape: tuple[Any, ...] = ()
    dtype: str = ""
    strides: tuple[Any, ...] = ()
    value: Any = None


@dataclass(frozen=True)
class NotedScope:
    """One scope that was entered and left, with the inputs that it was given."""

    native_id: int
    name: str
    entered_ns: int
    inputs: tuple[Input, ...]
    keywords: Mapping[str, Any]


def with_noted_inputs(fields: Columns, scopes: Sequence[NotedScope]) -> Columns:
    """Columns of inputs, to which those of `scopes` are added.

    Scopes of one name and thread get none if the recording has another number of them.
    """
    groups: dict[tuple[int, str], list[NotedScope]] = {}
    for scope in sorted(scopes, key=attrgetter("entered_ns")):
        groups.setdefault((scope.native_id, scope.name), []).append(scope)
    if fields.get("shape") is None or fields.get("values") is None or not groups:
        return {}
    shape, values, kind = (fields[name].copy() for name in ("shape", "values", "kind"))
    described: dict[Any, int] = {}
    texts = {text: index for index, text in enumerate(fields["value_texts"])}
    for (native_id, name), group in groups.items():
        rows = _rows_of(fields, native_id, name)
        if len(rows) != len(group):
            continue
        for row, scope in zip(rows.tolist(), group, strict=True):
            if scope.inputs:
                forms = tuple(zip(*(one[:3] for one in scope.inputs), strict=True))
                shape[row] = len(fields["shapes"]) + described.setdefault(forms, len(described))
            text = to_text(plain([one.value for one in scope.inputs], {})[0], scope.keywords)
            values[row] = texts.setdefault(text, len(texts))
            if scope.keywords.get("scope") == "user_scope":
                kind[row] = SCOPE
    tables = {
        table: (*fields[table], *(forms[part] for forms in described))
        for part, table in enumerate(("shapes", "dtypes", "strides"))
    }
    return {"kind": kind, "shape": shape, "values": values, "value_texts": tuple(texts), **tables}


def _rows_of(fields: Columns, native_id: int, name: str) -> Int64:
    """The events of that name on that thread, in order."""
    threads = [index for index, thread in enumerate(fields["tracks"]) if thread.native_id == native_id]
    named = [index for index, text in enumerate(fields["names"]) if text == name]
    return np.flatnonzero(np.isin(fields["track"], threads) & np.isin(fields["name"], named))
