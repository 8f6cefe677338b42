"""Adds what devices did to the recorder's columns of ops, with the op and call that launched it.

A call and all that it launched share a number. The op of a call is the innermost one that ran on
its thread at the middle of the call: clocks may differ by more than a call lies inside its op at
either end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mtprof_nb.building.interning import first_with_number, intern
from mtprof_nb.building.thread_intervals import ThreadIntervals
from mtprof_nb.capture.native.device_tracks import Places
from mtprof_nb.capture.native.kineto_rows import DeviceRows
from mtprof_nb.model.device_facts import KERNELS_OF_COLLECTIVES
from mtprof_nb.model.intervals import order_of
from mtprof_nb.model.trace import (
    DEVICE_SCOPE,
    KERNEL,
    OP,
    RUNTIME,
    SCOPE,
    SYNC,
    Bool,
    Columns,
    Int32,
    Int64,
    Track,
    on_device,
)

#: The recorder's columns of rows, and the value of each for what is no op.
_ABSENT = {
    **dict.fromkeys(("sequence_nr", "form", "values", "stack", "addresses", "scope"), -1),
    **dict.fromkeys(("held_before", "held_after"), -1),
    **dict.fromkeys(("handle", "forward_thread", "flags", "device_type", "device_index"), 0),
    **dict.fromkeys(("start", "duration", "name", "thread", "kind"), 0),
    "extra": -1,
}


class RecordedDevices(NamedTuple):
    """Calls and events of devices of one type."""

    device: str
    rows: DeviceRows
    #: Native ids of Python's threads, by the low half of Python's own numbers of them.
    python_threads: Mapping[int, int]


def with_devices(
    columns: Columns,
    recorded: RecordedDevices,
    tracks: tuple[Track, ...],
) -> tuple[Columns, Columns]:
    """The recorder's columns with those of devices among them, and facts for the builder.

    They are in the order of a `Trace`. `columns` has `kind`; `tracks` are those of `columns["threads"]`.
    """
    device, rows, python_threads = recorded
    places = Places.of(columns["threads"], rows, tracks, python_threads)
    join = Join(columns, rows, places)
    scopes = join.scopes()
    name, names = intern([*columns["names"], *rows.names])
    of_rows = name[len(columns["names"]) :]
    extra, extras = join.extras()
    own: Columns = {
        "start": np.concatenate((rows.start, scopes.start)),
        "duration": np.concatenate((rows.duration, scopes.duration)),
        "name": np.concatenate((of_rows[rows.name], name[columns["name"][scopes.scope]])),
        "thread": np.concatenate((places.track, scopes.track)),
        "extra": _extended(extra, len(scopes), -1),
        "kind": _extended(rows.kind, len(scopes), DEVICE_SCOPE),
    }
    at = _Positions.of(columns, own)
    made = dict(columns) | {
        column: at.placed(columns[column], own.get(column, absent))
        for column, absent in _ABSENT.items()
        if len(columns[column]) == len(columns["start"])
    }
    made["name"] = at.placed(name[columns["name"]], own["name"])
    made |= {"names": names, "extras": extras, "block_event": at.of_ops[columns["block_event"]]}
    nothing = np.full(len(columns["start"]), -1, np.int32)
    facts: Columns = {
        "launcher": at.placed(nothing, at.of_ops[np.append(join.launcher, scopes.scope)]),
        "launch": at.placed(nothing, _extended(at.of_rows[join.launch], len(scopes), -1)),
        "device": on_device(made["kind"]).astype(np.int8),
        "device_index": np.array([*places.index_of_track, 0], np.int8)[made["thread"]],
        "devices": ("CPU", device) if len(own["start"]) else ("CPU",),
        "tracks": places.all_tracks(device),
    }
    return made, facts


def _extended(column: Any, count: int, value: int) -> Any:
    return np.append(column, np.full(count, value, column.dtype))


@dataclass(frozen=True)
class _Positions:
    """The position in a trace of each op and of each other row, and after them -1, for -1."""

    of_ops: Int32
    of_rows: Int32

    @classmethod
    def of(cls, columns: Columns, own: Columns) -> _Positions:
        order = order_of(own["start"], own["duration"])
        start, duration = own["start"], own["duration"]
        if order is not None:
            start, duration = start[order], duration[order]
        before = _number_before(columns, start, duration)
        of_ops = np.full(len(before) + 1, -1, np.int32)
        of_ops[:-1] = before + np.arange(len(before), dtype=np.int32)
        is_row = np.ones(len(before) + len(start), np.bool_)
        is_row[of_ops[:-1]] = False
        of_rows = np.full(len(start) + 1, -1, np.int32)
        of_rows[slice(-1) if order is None else order] = np.flatnonzero(is_row)
        return cls(of_ops, of_rows)

    def placed(self, of_ops: Any, of_rows: Any) -> Any:
        """One column of the values of ops and of other rows, where each belongs."""
        count = len(self.of_ops) + len(self.of_rows) - 2
        if np.ndim(of_rows) == 0:
            found = np.full(count, of_rows, of_ops.dtype)
        else:
            found = np.empty(count, of_ops.dtype)
            found[self.of_rows[:-1]] = of_rows
        found[self.of_ops[:-1]] = of_ops
        return found


def _number_before(columns: Columns, start: Int64, duration: Int64) -> Int32:
    """How many rows come before each op in a trace: of those that begin with it, longer ones."""
    before = np.empty(len(columns["start"]), np.int32)
    before[:] = np.searchsorted(start, columns["start"])
    start, duration = np.append(start, np.int64(-1)), np.append(duration, np.int64(0))
    tied = np.flatnonzero(start[before] == columns["start"])
    while len(tied):
        at = before[tied]
        is_longer = duration[at] > columns["duration"][tied]
        tied = tied[is_longer & (start[at] == columns["start"][tied])]
        before[tied] += 1
    return before


@dataclass(frozen=True)
class Scopes:
    """Scopes on streams: the scope on the host that each is of, its time and its track."""

    scope: Int64
    track: Int32
    start: Int64
    duration: Int64

    def __len__(self) -> int:
        return len(self.scope)


@dataclass(frozen=True)
class Join:
    """For each row the call that launched it and the op that caused it, -1 where there is none."""

    columns: Columns
    rows: DeviceRows
    places: Places

    @cached_property
    def launch(self) -> Int32:
        number, is_call = self.rows.correlation, self.rows.is_call
        return first_with_number(number, np.flatnonzero(is_call), number, ~is_call & (number > 0))

    @cached_property
    def launcher(self) -> Int64:
        return self._around(self.columns["kind"] == OP)

    def _around(self, mask: Bool) -> Int64:
        """For each row the innermost of the chosen ops or scopes at the middle of its call."""
        columns, rows = self.columns, self.rows
        found = np.full(len(rows), -1, np.int64)
        calls = np.flatnonzero(rows.is_call)
        middle = rows.start[calls] + rows.duration[calls] // 2
        start, end = columns["start"], columns["start"] + columns["duration"]
        intervals = ThreadIntervals(start, end, columns["thread"])
        on_one_thread = columns["flags"] & 1 == 0
        found[calls] = intervals.running(mask & on_one_thread, self.places.track[calls], middle)
        return np.where(self.launch >= 0, found[self.launch], found)

    def scopes(self) -> Scopes:
        """A scope on each stream, from the first to the last event launched in one on the host."""
        rows = self.rows
        is_scope = self.columns["kind"] == SCOPE
        is_work = ~np.isin(rows.kind, (RUNTIME, DEVICE_SCOPE, SYNC))
        inside = np.flatnonzero(is_work & (self.launch >= 0))
        scope = self._around(is_scope)[inside] if is_scope.any() else np.full(len(inside), -1)
        inside, scope = inside[scope >= 0], scope[scope >= 0]
        count = self.places.count
        key = scope * count + self.places.track[inside]
        order = np.argsort(key, kind="stable")
        inside, key = inside[order], key[order]
        first = np.flatnonzero(np.diff(key, prepend=-1))
        start, end = rows.start[inside], rows.start[inside] + rows.duration[inside]
        begins = np.minimum.reduceat(start, first) if len(first) else start
        ends = np.maximum.reduceat(end, first) if len(first) else end
        track = (key[first] % count).astype(np.int32)
        return Scopes(key[first] // count, track, begins, ends - begins)

    def extras(self) -> tuple[Int32, list[str]]:
        """For each row a position in a table of facts, which begins with that of the ops.

        The facts of a collective are those of the op that launched its kernel.
        """
        rows, columns = self.rows, self.columns
        table = [*columns["extras"], *rows.fact_texts]
        extra = np.where(rows.facts >= 0, rows.facts + len(columns["extras"]), -1).astype(np.int32)
        is_named = [name.lower().startswith(KERNELS_OF_COLLECTIVES) for name in rows.names]
        kernels = np.flatnonzero((rows.kind == KERNEL) & np.array([*is_named, False])[rows.name])
        if not len(kernels) or not len(columns["extras"]):
            return extra, table
        op = self._around((columns["kind"] == OP) & (columns["extra"] >= 0))[kernels]
        kernels, op = kernels[op >= 0], op[op >= 0]
        said = columns["extra"][op].tolist(), extra[kernels].tolist()
        position, pairs = intern(list(zip(*said, strict=True)))
        extra[kernels] = position + len(table)
        known = [*table, "{}"]
        table += [_together(known[first], known[second]) for first, second in pairs]
        return extra, table


def _together(first: str, second: str) -> str:
    return json.dumps(json.loads(first) | json.loads(second))
