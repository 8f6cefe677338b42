"""Memory of a recording: an allocator's records, or readings of its counter around every op."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mtprof_nb.building.thread_intervals import ThreadIntervals
from mtprof_nb.model.intervals import runs_of_equal
from mtprof_nb.model.trace import OP, SCOPE, Allocations, Bool, Int32, Int64, Trace


class UnownedRecords(NamedTuple):
    """Records in order of time, without their events; `device` is a position in `devices`."""

    records: Allocations
    devices: Sequence[str]


def with_records(trace: Trace, unowned: UnownedRecords) -> Trace:
    """`trace` with an allocator's records, owned by the ops and scopes that were running.

    Totals go on from before the recording; `with_own_memory` makes those of the recording.
    """
    records, names = unowned
    devices = tuple(dict.fromkeys((*trace.devices, *names)))
    device = np.array([devices.index(name) for name in names] or [0], np.int8)[records.device]
    owned = replace(records, device=device, event=innermost_events(trace, records))
    return replace(trace, devices=devices, allocations=owned)


def of_recording(trace: Trace, records: Allocations) -> Allocations:
    """`records` with totals that begin at zero, and without releases of blocks that were allocated before.

    An allocator's totals go on from one recording to the next, and PyTorch's miss releases while nobody recorded.
    Where a block is allocated at the address of another one, that one is gone: a thread that is not recorded has
    released it. A release is added for it.
    """
    held: dict[tuple[int, int, int], int] = {}
    is_own = np.ones(len(records), np.bool_)
    reused: list[tuple[int, int]] = []
    columns = (records.device.tolist(), records.device_index.tolist(), records.address.tolist())
    for row, (block, nbytes) in enumerate(zip(zip(*columns, strict=True), records.nbytes.tolist(), strict=True)):
        if nbytes > 0:
            if block[2] and block in held:
                reused.append((held[block], row))
            held[block] = row
        elif block in held:
            del held[block]
        else:
            is_own[row] = block[2] == 0
    own = _with_unseen_releases(trace, records, np.flatnonzero(is_own), np.array(reused, np.int64).reshape(-1, 2))
    return replace(own, total=_running_totals(own))


def _with_unseen_releases(trace: Trace, records: Allocations, own: Int64, reused: Int64) -> Allocations:
    """The records at `own`, and a release for each pair of allocations of one address in `reused`.

    The release belongs to no op. It comes before the op that allocates again, unless that op made the earlier block.
    """
    earlier, later = reused.T
    outside = _starts_of_outermost_ops(trace, records, later) - 1
    moment = np.where(outside > records.time_ns[earlier], outside, records.time_ns[later])
    rows = np.concatenate((own, later))
    joined = replace(
        records.take(rows),
        time_ns=np.concatenate((records.time_ns[own], moment)),
        nbytes=np.concatenate((records.nbytes[own], -records.nbytes[earlier])),
        event=np.concatenate((records.event[own], np.full(len(later), -1, np.int32))),
    )
    # At one moment, a release comes right before the allocation at the same address.
    is_unseen = np.arange(len(rows)) >= len(own)
    return joined.take(np.lexsort((2 * rows - is_unseen, joined.time_ns)))


def _starts_of_outermost_ops(trace: Trace, records: Allocations, rows: Int64) -> Int64:
    """For each of `rows` of `records` when the outermost op began that its thread was running, or its own time."""
    is_op, intervals = (trace.kind == OP) & ~trace.is_async, _intervals(trace)
    times = records.time_ns[rows]
    running = intervals.running(is_op, records.track[rows], times)
    return np.where(running >= 0, trace.start_ns[intervals.outermost(is_op)[running]], times) if len(trace) else times


def _running_totals(records: Allocations) -> Int64:
    """The bytes that each device holds at least, of this recording.

    A sum below zero shows that memory from before the recording was released. Records without addresses do not show
    which: all that the recording held is then taken as released.
    """
    total = np.zeros(len(records), np.int64)
    for here in runs_of_equal(records.device.astype(np.int32) * 256 + records.device_index):
        held = np.cumsum(records.nbytes[here])
        total[here] = held - np.minimum(np.minimum.accumulate(held), 0)
    return total


def with_own_memory(trace: Trace) -> Trace:
    """`trace` with the allocator's records of this recording, and the bytes that were allocated around each op."""
    if trace.allocations is None:
        return trace
    records = of_recording(trace, trace.allocations)
    before, after = held_around(trace, records, trace.kind == OP)
    return replace(trace, allocations=records, memory_before=before, memory_after=after)


def with_readings(trace: Trace, before: Int64, after: Int64) -> Trace:
    """`trace` with the bytes its devices held before and after each op (-1: not read), and every change between.

    A change between two readings belongs to the innermost op that was running: an op's own memory is the sum of its
    rows, and the rows of a device add up to the counter. A device's counter includes memory from before the recording,
    which is subtracted as far as it is known.
    """
    has_reading = (before >= 0) & (after >= 0)
    before, after = np.where(has_reading, before, -1), np.where(has_reading, after, -1)
    parts = []
    for device, index in _devices(trace, has_reading):
        here = has_reading & (trace.device == device) & (trace.device_index == index)
        parts.append(_changes(trace, here, before, after, counts_from_start=trace.devices[device] == "CPU"))
    return replace(trace, memory_before=before, memory_after=after, allocations=Allocations.joined(parts))


def _devices(trace: Trace, chosen: Bool) -> list[tuple[int, int]]:
    """Types and indices of the devices of the chosen events, in order."""
    # One column of small integers is sorted many times faster than pairs are.
    key = trace.device[chosen].astype(np.int16) * 256 + trace.device_index[chosen]
    return [((number + 128) // 256, (number + 128) % 256 - 128) for number in np.unique(key).tolist()]


def _changes(trace: Trace, mask: Bool, before: Int64, after: Int64, *, counts_from_start: bool) -> Allocations:
    """The changes of one device's counter. Subtracts from `before` and `after` the memory from before the recording."""
    rows = np.flatnonzero(mask)
    moment = np.concatenate((trace.start_ns[rows], trace.end_ns[rows]))
    held = np.concatenate((before[rows], after[rows]))
    parents = _intervals(trace).parents(mask)
    event = np.concatenate((parents[rows], rows))
    reader = np.concatenate((rows, rows))
    # At one moment, an end was read before a start, but an op without length starts first.
    begins = np.arange(len(moment)) < len(rows)
    is_instant = np.concatenate((trace.duration_ns[rows], trace.duration_ns[rows])) == 0
    order = np.lexsort((np.where(is_instant, 2 + ~begins, begins), moment))
    if not counts_from_start:
        # A counter that falls below its first reading shows that memory from before was released.
        held[order] -= np.minimum.accumulate(held[order])
        before[rows], after[rows] = held[: len(rows)], held[len(rows) :]
    nbytes = np.diff(held[order], prepend=0)
    changed = order[nbytes != 0]
    reader = reader[changed]
    return Allocations(
        # A change that an op reads as it begins came before it.
        time_ns=np.maximum.accumulate(moment[changed] - begins[changed]),
        nbytes=nbytes[nbytes != 0],
        total=held[changed],
        address=np.zeros(len(changed), np.int64),
        event=event[changed],
        track=trace.track[reader],
        device=trace.device[reader],
        device_index=trace.device_index[reader],
    )


def innermost_events(trace: Trace, records: Allocations) -> Int32:
    """For each record the innermost op or scope that its thread was running then, or -1."""
    owns = ((trace.kind == OP) | (trace.kind == SCOPE)) & ~trace.is_async
    return _intervals(trace).running(owns, records.track, records.time_ns).astype(np.int32)


def _intervals(trace: Trace) -> ThreadIntervals:
    return ThreadIntervals(trace.start_ns, trace.end_ns, trace.track)


def held_around(trace: Trace, records: Allocations, ops: Bool) -> tuple[Int64, Int64]:
    """Bytes that the allocator of each of `ops` held on the op's own device when it began and when it ended."""
    before, after = np.full(len(trace), -1, np.int64), np.full(len(trace), -1, np.int64)
    for device, index in _devices(trace, ops):
        rows = np.flatnonzero(ops & (trace.device == device) & (trace.device_index == index))
        here = (records.device == device) & (records.device_index == index)
        times, totals = records.time_ns[here], records.total[here]
        held = np.concatenate(([totals[0] - records.nbytes[here][0] if len(totals) else 0], totals))
        before[rows] = held[np.searchsorted(times, trace.start_ns[rows], side="left")]
        after[rows] = held[np.searchsorted(times, trace.end_ns[rows], side="right")]
    return before, after
