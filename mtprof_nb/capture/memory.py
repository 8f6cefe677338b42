"""What an allocator's counter, read around every op, tells: who changed it, and by how much."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mtprof_nb.intervals import nest_intervals
from mtprof_nb.trace import Allocations, Bool, Int64, Trace


def with_readings(trace: Trace, before: Int64, after: Int64) -> Trace:
    """`trace` with the bytes its devices held before and after each op (-1: not read), and every change between.

    A change between two readings is the innermost op's that was running, so that an op's own memory is the sum of
    its rows, and the rows of a device add up to the counter.
    """
    has_reading = (before >= 0) & (after >= 0)
    places = {(int(device), int(index)) for device, index in zip(trace.device, trace.device_index, strict=True)}
    parts = []
    for device, index in sorted(places):
        here = has_reading & (trace.device == device) & (trace.device_index == index)
        if here.any():
            parts.append(_changes(trace, here, before, after))
    return replace(trace, memory_before=before, memory_after=after, allocations=Allocations.joined(parts))


def _changes(trace: Trace, mask: Bool, before: Int64, after: Int64) -> Allocations:
    rows = np.flatnonzero(mask)
    moment = np.concatenate((trace.start_ns[rows], trace.end_ns[rows]))
    held = np.concatenate((before[rows], after[rows]))
    event = np.concatenate((_parents(trace, rows), rows))
    reader = np.concatenate((rows, rows))
    # At one moment, what ends there was read before what begins there; an op without length begins first.
    begins = np.arange(len(moment)) < len(rows)
    is_instant = np.concatenate((trace.duration_ns[rows], trace.duration_ns[rows])) == 0
    order = np.lexsort((np.where(is_instant, 2 + ~begins, begins), moment))
    nbytes = np.diff(held[order], prepend=held[order[0]])
    changed = order[nbytes != 0]
    reader = reader[changed]
    return Allocations(
        time_ns=moment[changed],
        nbytes=nbytes[nbytes != 0],
        total=held[changed],
        address=np.zeros(len(changed), np.int64),
        event=event[changed],
        thread=trace.thread[reader],
        device=trace.device[reader],
        device_index=trace.device_index[reader],
    )


def _parents(trace: Trace, rows: Int64) -> Int64:
    """For each of `rows`, the one of them on the same thread that it ran in, or -1."""
    found = np.full(len(rows), -1, np.int64)
    for thread in np.unique(trace.thread[rows]).tolist():
        here = np.flatnonzero(trace.thread[rows] == thread)
        parents, _ = nest_intervals(trace.start_ns[rows[here]], trace.end_ns[rows[here]])
        found[here] = np.where(parents >= 0, rows[here][parents], -1)
    return found
