"""The table of operators: its columns, and rows of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mtprof_nb.analysis.module_rows import events_in_module
from mtprof_nb.model.trace import Bool, Int8, Int32, Int64


class Column(NamedTuple):
    """A column of numbers: its key, title, unit and meaning."""

    key: str
    title: str
    unit: str
    meaning: str
    #: Of a column of shares, the column whose shares they are.
    of: str = ""


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
    columns: tuple[Column, ...]
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
        """Positions of the rows by one column, or by the default one where these rows lack it; ties by name."""
        by_label = np.array(sorted(range(len(self)), key=lambda row: (self.label[row], self.detail[row])), np.int64)
        if key == "label":
            return by_label if not descending else by_label[::-1]
        of = {column.key: column.of or column.key for column in self.columns}.get(key, key)
        values = self.value.get(of, self.value[self.default_sort])[by_label]
        return by_label[np.argsort(-values if descending else values, kind="stable")]

    def share(self, column: Column, row: int) -> tuple[int, int]:
        """Part and whole of a cell of a column of shares."""
        return int(self.value[column.of][row]), self.wholes[column.of]
