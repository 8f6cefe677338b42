"""The records of all threads of a Python hook as sorted columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtprof_nb.building.thread_intervals import ThreadIntervals
from mtprof_nb.capture.buffers.buffer import SCOPE_FIELDS, Buffer, ThreadRecords
from mtprof_nb.model.trace import Bool, Int64


@dataclass(frozen=True)
class Rows(ThreadIntervals):
    """One row per event in the order of a `Trace`; `op` leads to the values that only ops have."""

    #: Position in the lists of `ops`, or -1 for a scope.
    op: Int64
    #: Position in the lists of `scopes`, or -1 for an op.
    scope: Int64
    ops: dict[str, list[Any]]
    scopes: dict[str, list[Any]]
    #: The records of each thread, by `thread`.
    threads: Sequence[ThreadRecords]

    @property
    def is_op(self) -> Bool:
        """Ops, as opposed to scopes."""
        are_ops: Bool = self.op >= 0
        return are_ops

    def of_ops(self, values: Any, absent: Any) -> Any:
        """A column for all rows from one value per op."""
        values = np.asarray(values)
        return np.append(values, np.array(absent, values.dtype))[self.op]

    def of_scopes(self, holds: list[bool]) -> Bool:
        """Which rows are scopes for which `holds` is true, which has one value per scope."""
        return np.array([*holds, False], np.bool_)[self.scope]

    def of_all(self, values: Any) -> Any:
        """A column for all rows from one value per op, followed by one value per scope."""
        return np.asarray(values)[np.where(self.is_op, self.op, len(self.ops["name"]) + self.scope)]


def read_rows(buffer: Buffer) -> Rows:
    """The rows recorded until the buffer was closed; a scope that is still open ends there."""
    threads = [thread for thread in list(buffer.threads) if thread.ops or thread.scopes or thread.open_scopes]
    ops: dict[str, list[Any]] = {field: [] for field in buffer.fields}
    scopes: dict[str, list[Any]] = {field: [] for field in SCOPE_FIELDS}
    op_thread: list[int] = []
    scope_thread: list[int] = []
    for index, thread in enumerate(threads):
        op_thread += [index] * _append(ops, thread.ops)
        still_open = [scope.record(buffer.ended, False) for scope in list(thread.open_scopes)]
        flat = list(thread.scopes) + [value for record in still_open for value in record]
        scope_thread += [index] * _append(scopes, flat)
    start = np.array(ops["start"] + scopes["start"], np.int64)
    end = np.array(ops["end"] + scopes["end"], np.int64)
    order = np.lexsort((start - end, start))
    count = len(op_thread)
    return Rows(
        start=start[order],
        end=end[order],
        thread=np.array(op_thread + scope_thread, np.int32)[order],
        op=np.where(order < count, order, -1),
        scope=np.where(order < count, -1, order - count),
        ops=ops,
        scopes=scopes,
        threads=threads,
    )


def _append(columns: dict[str, list[Any]], flat: list[Any]) -> int:
    """Append the complete records of `flat` to `columns`; returns how many there are."""
    width = len(columns)
    count = len(flat) // width
    for position, column in enumerate(columns.values()):
        column += flat[position : count * width : width]
    return count
