"""Traces of any size: a real recording laid end to end as often as needed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.profilers import ours, recorded
from benchmarks.programs import MLP, Program
from mtprof_nb.model.schema import Record, schema_of
from mtprof_nb.model.trace import Allocations, Trace


def recording(steps: int, program: Program = MLP, **flags: Any) -> Trace:
    """A program, the standard one by default, recorded by Kineto."""
    profiler = recorded(ours("kineto", **flags), program.prepare(steps))
    profiler.stop()
    trace: Trace = profiler.trace
    return trace


def repeated(trace: Trace, events: int) -> Trace:
    """About `events` events: `trace` again and again, each time as much later as it is long."""
    times, length, count = max(round(events / len(trace)), 1), trace.ended_ns - trace.began_ns, len(trace)
    columns = _tiled(trace, "start_ns", times, length, count)
    is_op = columns["correlation_id"] > 0
    columns["correlation_id"] = np.cumsum(is_op) * is_op
    records = trace.allocations
    allocations = None if records is None else Allocations(**_tiled(records, "time_ns", times, length, count))
    return replace(trace, **columns, allocations=allocations, ended_ns=trace.began_ns + times * length)


def _tiled(record: Record, clock: str, times: int, length: int, count: int) -> dict[str, Any]:
    """The columns of `record` one after another, each time `length` later and pointing `count` events further."""
    columns: dict[str, Any] = {name: np.tile(column, times) for name, column in record.columns.items()}
    shift = np.repeat(np.arange(times), len(getattr(record, clock)))
    columns[clock] = columns[clock] + shift * length
    for name, column in schema_of(type(record)).columns.items():
        if column.points_to_event and name in columns:
            columns[name] = np.where(columns[name] >= 0, columns[name] + shift * count, -1)
    return columns
