"""The table of operators: rows of numbers, and rows for modules that contain others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mtprof_nb.model.trace import Bool, Int8, Int32, Int64
from mtprof_nb.tables.table import TableColumn


@dataclass(frozen=True, eq=False)
class OperatorRows:
    """Columns of the table, one entry a row, in no order; `value[key]` are integers."""

    grouping: str
    #: The row of each event of the trace, -1 for none.
    of_event: Int32
    #: A value for each key of the grouping; rows of two recordings with equal values are the same.
    key: list[tuple[Any, ...]]
    label: list[str]
    detail: list[str]
    family: Int8
    #: The name of the row's first event, as a position in `Trace.names`; -1 for a row without events.
    name: Int32
    value: dict[str, Int64]
    columns: tuple[TableColumn, ...]
    #: Of each column of shares, the whole, under the key of the column whose shares they are.
    wholes: dict[str, int]

    def __len__(self) -> int:
        return len(self.label)

    @property
    def default_sort(self) -> str:
        """The column that the rows are sorted by unless another one is asked for."""
        return "self_ns" if any(column.key == "self_ns" for column in self.columns) else "device_ns"

    def events_of(self, row: int) -> Bool:
        """The events of a row; for a module, also those of its submodules."""
        return events_in_module(self, row) if self.grouping == "module" else self.of_event == row

    def order(self, key: str, descending: bool = True) -> Int64:
        """Positions of the rows, sorted by a column, or by the default one if they lack it; ties by name."""
        by_label = np.array(sorted(range(len(self)), key=lambda row: (self.label[row], self.detail[row])), np.int64)
        if key == "label":
            return by_label if not descending else by_label[::-1]
        of = {column.key: column.of or column.key for column in self.columns}.get(key, key)
        values = self.value.get(of, self.value[self.default_sort])[by_label]
        return by_label[np.argsort(-values if descending else values, kind="stable")]

    def share(self, column: TableColumn, row: int) -> tuple[int, int]:
        """Part and whole of a cell of a column of shares."""
        return int(self.value[column.of][row]), self.wholes[column.of]


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
