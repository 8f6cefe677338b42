"""The records of all threads as sorted columns, before anything is concluded from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtprof_nb.capture.shared.buffer import SCOPE_FIELDS, Buffer, Lane
from mtprof_nb.model.intervals import covered, innermost, nest_intervals
from mtprof_nb.model.trace import Bool, Int32, Int64


@dataclass(frozen=True)
class Rows:
    """One row an event in the order of a `Trace`; what ops alone have is reached through `op`."""

    start: Int64
    end: Int64
    lane: Int32
    #: Position in the lists of `ops`, or -1 for a scope.
    op: Int64
    #: Position in the lists of `scopes`, or -1 for an op.
    scope: Int64
    ops: dict[str, list[Any]]
    scopes: dict[str, list[Any]]
    lanes: Sequence[Lane]

    def __len__(self) -> int:
        return len(self.start)

    @property
    def is_op(self) -> Bool:
        """Ops, as opposed to scopes."""
        found: Bool = self.op >= 0
        return found

    def of_ops(self, values: Any, absent: Any) -> Any:
        """A column for all rows from one value an op."""
        values = np.asarray(values)
        column = np.full(len(self), absent, values.dtype)
        column[self.is_op] = values[self.op[self.is_op]]
        return column

    def of_all(self, values: Any) -> Any:
        """A column for all rows from one value an op, followed by one value a scope."""
        return np.asarray(values)[np.where(self.is_op, self.op, len(self.ops["name"]) + self.scope)]

    def by_lane(self, mask: Bool) -> list[Int64]:
        """For each lane that has some, its rows of `mask`, in order."""
        chosen = np.flatnonzero(mask)
        chosen = chosen[np.argsort(self.lane[chosen], kind="stable")]
        edges = np.flatnonzero(np.diff(self.lane[chosen])) + 1
        return np.split(chosen, edges) if len(chosen) else []

    def inside(self, mask: Bool) -> Bool:
        """Whether each row started while a row of `mask`, of the same lane, was running (itself counts)."""
        found = mask.copy()
        for outer in self.by_lane(mask):
            here = np.flatnonzero(self.lane == self.lane[outer[0]])
            found[here] |= covered(self.start[outer], self.end[outer], self.start[here])
        return found

    def innermost(self, mask: Bool) -> Int64:
        """The last-starting row of `mask`, of the same lane, that was running as each row started (itself counts)."""
        found = np.where(mask, np.arange(len(self)), -1)
        for outer in self.by_lane(mask):
            here = np.flatnonzero((self.lane == self.lane[outer[0]]) & ~mask)
            starts, ends = self.start[outer], self.end[outer]
            at = innermost(starts, ends, nest_intervals(starts, ends)[0], self.start[here])
            found[here] = np.where(at >= 0, outer[at], -1)
        return found


def read_rows(buffer: Buffer) -> Rows:
    """The rows recorded until the buffer was closed; a scope that is still open ends there."""
    lanes = [lane for lane in list(buffer.lanes) if lane.ops or lane.scopes or lane.open_scopes]
    ops: dict[str, list[Any]] = {field: [] for field in buffer.fields}
    scopes: dict[str, list[Any]] = {field: [] for field in SCOPE_FIELDS}
    op_lane: list[int] = []
    scope_lane: list[int] = []
    for index, lane in enumerate(lanes):
        op_lane += [index] * _append(ops, lane.ops)
        still_open = [scope.record(buffer.ended, False) for scope in list(lane.open_scopes)]
        flat = list(lane.scopes) + [value for record in still_open for value in record]
        scope_lane += [index] * _append(scopes, flat)
    start = np.array(ops["start"] + scopes["start"], np.int64)
    end = np.array(ops["end"] + scopes["end"], np.int64)
    order = np.lexsort((start - end, start))
    count = len(op_lane)
    return Rows(
        start=start[order],
        end=end[order],
        lane=np.array(op_lane + scope_lane, np.int32)[order],
        op=np.where(order < count, order, -1),
        scope=np.where(order < count, -1, order - count),
        ops=ops,
        scopes=scopes,
        lanes=lanes,
    )


def _append(columns: dict[str, list[Any]], flat: list[Any]) -> int:
    """Deal the whole records of `flat` out to `columns`; how many there were."""
    width = len(columns)
    count = len(flat) // width
    for position, column in enumerate(columns.values()):
        column += flat[position : count * width : width]
    return count
