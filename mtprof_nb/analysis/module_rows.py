"""Rows of the grouping by module: rows for containers, and the events of a module."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mtprof_nb.model.trace import Bool

if TYPE_CHECKING:
    from mtprof_nb.analysis.operator_table import OperatorRows


def with_containers(rows: OperatorRows, family: int) -> OperatorRows:
    """`rows`, and a row for each module that ran no op itself but has a submodule that did.

    For `Net.encoder.0` alone, these are `Net` and `Net.encoder`: no ops and no time of their own, and the total of
    their submodules.
    """
    known, total_ns = set(rows.label), dict[str, int]()
    for label, own_ns in zip(rows.label, rows.value["self_ns"].tolist(), strict=True):
        for path in paths_above(label):
            if path not in known:
                total_ns[path] = total_ns.get(path, 0) + own_ns
    if not total_ns:
        return rows
    nothing = np.zeros(len(total_ns), np.int64)
    value = {key: np.concatenate((column, nothing)) for key, column in rows.value.items()}
    value["total_ns"][len(rows) :] = list(total_ns.values())
    return replace(
        rows,
        key=[*rows.key, *((path,) for path in total_ns)],
        label=[*rows.label, *total_ns],
        detail=[*rows.detail, *("" for _ in total_ns)],
        family=np.concatenate((rows.family, np.full(len(total_ns), family, np.int8))),
        name=np.concatenate((rows.name, np.full(len(total_ns), -1, np.int32))),
        value=value,
    )


def events_in_module(rows: OperatorRows, row: int) -> Bool:
    """Which events ran in the module of `row`, or in one of its submodules."""
    path = rows.label[row]
    inside = [label == path or path in paths_above(label) for label in rows.label]
    return np.array([*inside, False], np.bool_)[rows.of_event]


def paths_above(path: str) -> list[str]:
    """The modules that contain one: `Net` and `Net.encoder` for `Net.encoder.0`."""
    parts = path.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts))]
