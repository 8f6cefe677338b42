"""Traces of any size: a real recording laid end to end as often as needed."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from benchmarks.profilers import ours, recorded
from benchmarks.programs import MLP
from mtprof_nb.trace import Allocations, Trace

_REFERENCES = ("forward", "launcher")


def recording(steps: int, **flags: Any) -> Trace:
    """The standard program, recorded by Kineto."""
    profiler = recorded(ours("kineto", **flags), MLP.prepare(steps))
    profiler.stop()
    trace: Trace = profiler.trace
    return trace


def repeated(trace: Trace, events: int) -> Trace:
    """About `events` events: `trace` again and again, each time as much later as it is long."""
    times, length, count = max(round(events / len(trace)), 1), trace.ended_ns - trace.began_ns, len(trace)
    shift = np.repeat(np.arange(times), count)
    columns: dict[str, Any] = {
        part.name: np.tile(value, times)
        for part in fields(Trace)
        if isinstance(value := getattr(trace, part.name), np.ndarray)
    }
    columns["start_ns"] = columns["start_ns"] + shift * length
    for reference in _REFERENCES:
        if reference in columns:
            columns[reference] = np.where(columns[reference] >= 0, columns[reference] + shift * count, -1)
    is_op = columns["correlation_id"] > 0
    columns["correlation_id"] = np.cumsum(is_op) * is_op
    allocations = None if trace.allocations is None else _repeated_allocations(trace.allocations, times, length, count)
    return replace(trace, **columns, allocations=allocations, ended_ns=trace.began_ns + times * length)


def _repeated_allocations(records: Allocations, times: int, length: int, count: int) -> Allocations:
    shift = np.repeat(np.arange(times), len(records))
    columns: dict[str, Any] = {
        part.name: np.tile(value, times)
        for part in fields(Allocations)
        if (value := getattr(records, part.name)) is not None
    }
    columns["time_ns"] = columns["time_ns"] + shift * length
    columns["event"] = np.where(columns["event"] >= 0, columns["event"] + shift * count, -1)
    return Allocations(**columns)
