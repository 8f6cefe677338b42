"""Hand-made traces: a list of short rows becomes a `Trace` with exact numbers.

The schema of `Trace` says which columns there are, so that a new column needs nothing here: a row may name it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from mtprof_nb.model.input_values import to_text
from mtprof_nb.model.schema import Record, schema_of
from mtprof_nb.model.trace import (
    KERNEL,
    KINDS,
    PHASES,
    Allocations,
    Frame,
    Process,
    Recorded,
    SourceLine,
    StackInterner,
    Trace,
    Track,
)

Row = dict[str, Any]
#: The column that is there where a flag was on.
_COLUMNS_OF_FLAGS = {
    "record_shapes": "shape",
    "profile_memory": "memory_before",
    "with_stack": "stack",
    "with_flops": "flops",
    "with_modules": "module",
}


def event(name: str, start_ns: int, end_ns: int, **facts: Any) -> Row:
    """One row for `make_trace`. A fact has the name of a column; of one that points into a table, it is the entry.

    These are written otherwise: kind and phase in words, thread (with thread_number) or stream for the track, shapes
    with dtypes and strides, stack and line_stack as frames, innermost first: ("f.py", 3, "run"), line=("f.py", 3),
    memory=(before, after), values=(inputs, keywords), extra as a dict.
    """
    return {"name": name, "start_ns": start_ns, "end_ns": end_ns, **facts}


def make_trace(rows: list[Row], allocations: list[Row] | None = None, **scalars: Any) -> Trace:
    """A `Trace` of `rows` (see `event`), sorted. `scalars` are fields of `Trace`, and pid, rank, host, metadata."""
    tables = _Tables()
    columns = _columns(Trace, rows, tables)
    is_op = np.array([row.get("kind", "op") == "op" for row in rows], np.bool_)
    columns["correlation_id"] = np.cumsum(is_op) * is_op
    flags = {flag: column in columns for flag, column in _COLUMNS_OF_FLAGS.items()}
    if allocations is not None:
        flags["profile_memory"] = True
        totals = np.cumsum([row["nbytes"] for row in allocations]).tolist()
        counted = [{"total": total, **row} for row, total in zip(allocations, totals, strict=True)]
        columns["allocations"] = Allocations(**_columns(Allocations, counted, tables))
    scalars["metadata"] = tuple(scalars.get("metadata", {}).items())
    process = Process(**{name: scalars.pop(name) for name in ("pid", "rank", "host", "metadata") if name in scalars})
    scalars.setdefault("recorded", Recorded(**flags))
    scalars.setdefault("began_ns", min((row["start_ns"] for row in rows), default=0))
    scalars.setdefault("ended_ns", max((row["end_ns"] for row in rows), default=0))
    return Trace(**columns, **tables.fields(), processes=(process,), **scalars).sorted()


def with_defaults(record: type, count: int, **columns: Any) -> dict[str, Any]:
    """`columns`, and for each other one that `record` must have, `count` times the number that means nothing."""
    needed = [column for column in schema_of(record).columns.values() if not column.is_optional]
    return {column.name: np.full(count, column.absent) for column in needed} | columns


def _columns(record: type, rows: Sequence[Row], tables: _Tables) -> dict[str, Any]:
    """Each column that some row has a fact of, and those that must be there."""
    columns = with_defaults(record, len(rows))
    for column in schema_of(record).columns.values():
        read = _READERS.get(column.name, lambda row, name=column.name: row.get(name))
        facts = [read(row) for row in rows]
        if all(fact is None for fact in facts):
            continue
        if column.table:
            facts = [None if fact is None else tables.position(column.table, fact) for fact in facts]
        columns[column.name] = [column.absent if fact is None else fact for fact in facts]
    return columns


class _Tables:
    """The tables of a trace that is being made. An entry that has others beside it is a tuple of all of them."""

    def __init__(self) -> None:
        self._entries: dict[str, dict[Any, int]] = {table: {} for table in ("names", "devices", "tracks")}
        self._stacks: dict[str, StackInterner] = {}

    def position(self, table: str, entry: Any) -> int:
        if table in schema_of(Trace).records:
            frames = (Frame(*frame) for frame in reversed(entry))
            return self._stacks.setdefault(table, StackInterner()).stack(frames)
        known = self._entries.setdefault(table, {})
        return known.setdefault(entry, len(known))

    def fields(self) -> dict[str, Any]:
        beside = schema_of(Trace).beside
        found: dict[str, Any] = {table: interner.tree() for table, interner in self._stacks.items()}
        for table, entries in self._entries.items():
            if table not in beside:
                found[table] = tuple(entries)
                continue
            for name, column in zip((table, *beside[table]), zip(*entries, strict=True), strict=True):
                found[name] = () if all(entry is None for entry in column) else tuple(entry or () for entry in column)
        found["devices"] = found["devices"] or ("CPU",)
        return found


def _track(row: Row) -> Track:
    native = row.get("thread", 1)
    if KINDS.index(row.get("kind", "op")) >= KERNEL:
        device = f"{row.get('device', 'CPU')}:{row.get('device_index', 0)}"
        return Track(native, f"stream {native}", "stream", device=device)
    return Track(native, f"thread {native}", number=row.get("thread_number", -1))


def _given(key: str, read: Callable[[Any], Any]) -> Callable[[Row], Any]:
    """A reader of the fact `key`; None where a row lacks it."""
    return lambda row: None if row.get(key) is None else read(row[key])


def _shape(row: Row) -> Any:
    if "shapes" not in row:
        return None
    return row["shapes"], row.get("dtypes", ("float",) * len(row["shapes"])), row.get("strides")


#: How a fact is read from a row, where it does not stand under the column's name.
_READERS: dict[str, Callable[[Row], Any]] = {
    "kind": lambda row: KINDS.index(row.get("kind", "op")),
    "phase": lambda row: PHASES.index(row.get("phase", "forward")),
    "device": lambda row: row.get("device", "CPU"),
    "duration_ns": lambda row: row["end_ns"] - row["start_ns"],
    "track": _track,
    "shape": _shape,
    "stack_is_forward": lambda row: row.get("stack_is_forward", False if "stack" in row else None),
    "memory_before": _given("memory", lambda memory: memory[0]),
    "memory_after": _given("memory", lambda memory: memory[1]),
    "line": _given("line", lambda line: SourceLine(*line)),
    "values": _given("values", lambda values: to_text(*values)),
    "extra": _given("extra", json.dumps),
}


def differences(one: Record, other: Record, where: str = "") -> list[str]:
    """The fields in which two records differ, types of columns and of entries included."""
    found = []
    for field in fields(one):  # type: ignore[arg-type]
        left, right = getattr(one, field.name), getattr(other, field.name)
        if isinstance(left, Record) and isinstance(right, Record):
            found += differences(left, right, f"{field.name}.")
        elif isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
            found += [f"{where}{field.name}"] * (left.dtype != right.dtype or not np.array_equal(left, right))
        elif repr(left) != repr(right):
            found.append(f"{where}{field.name}")
    return found
