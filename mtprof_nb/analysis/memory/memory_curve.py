"""Bytes that a device held over time and their peak; the largest blocks, and those at the peak."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mtprof_nb.analysis.devices.recorded_devices import Device, distinct_devices, is_of_device
from mtprof_nb.analysis.groups import number_combinations, sums
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.memory.allocation_pairs import releases_of
from mtprof_nb.analysis.memory.memory_categories import Category, categories
from mtprof_nb.analysis.nesting import nesting
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.trace import OP, Allocations, Bool, Int32, Int64, SourceLine, Trace


@dataclass(frozen=True, eq=False)
class MemoryCurve:
    """Bytes held from each of `time_ns` on, and the event and line that allocated or released (-1 if not known)."""

    time_ns: Int64
    allocated: Int64
    event: Int32
    line: Int32


class Peak(NamedTuple):
    """The first moment at which a device held the most, and the event that reached it, or -1."""

    time_ns: int
    nbytes: int
    event: int


class Allocation(NamedTuple):
    """One allocation; `released_ns` is None for a block that was held until the end."""

    nbytes: int
    allocated_ns: int
    released_ns: int | None
    event: int
    category: Category
    #: A position in `Attribution.lines`, or -1.
    line: int = -1


class AllocationGroup(NamedTuple):
    """Allocations that differ only in size and time: the largest, their number, and their bytes together."""

    largest: Allocation
    number: int
    nbytes: int


def memory_devices(trace: Trace) -> list[Device]:
    """The devices with recorded memory, process by process, in the order of the trace's devices."""
    if trace.allocations is not None:
        device, index, track = trace.allocations.device, trace.allocations.device_index, trace.allocations.track
    elif trace.memory_before is not None:
        known = trace.memory_before >= 0
        device, index, track = trace.device[known], trace.device_index[known], trace.track[known]
    else:
        return []
    return distinct_devices(trace, device, index, track)


def memory_curve(trace: Trace, device: Device) -> MemoryCurve:
    """The allocator's count after each of its records; for a runtime without records, around each op."""
    if trace.allocations is not None:
        records = trace.allocations
        rows = rows_of_device(trace, records, device)
        line = lines_of_records(trace, records)[rows]
        return MemoryCurve(records.time_ns[rows], records.total[rows], records.event[rows], line)
    if trace.memory_before is None or trace.memory_after is None:
        nothing, nowhere = np.empty(0, np.int64), np.empty(0, np.int32)
        return MemoryCurve(nothing, nothing, nowhere, nowhere)
    known = (trace.memory_before >= 0) & (trace.memory_after >= 0)
    rows = np.flatnonzero(is_of_device(trace, trace, device) & known)
    times = np.concatenate([trace.start_ns[rows], trace.end_ns[rows]])
    order = np.argsort(times, kind="stable")
    held = np.concatenate([trace.memory_before[rows], trace.memory_after[rows]])
    event = np.concatenate([rows, rows]).astype(np.int32)[order]
    return MemoryCurve(times[order], held[order], event, attribution(trace).line[event])


def peak(curve: MemoryCurve) -> Peak | None:
    """When the curve is highest, None where it is empty."""
    if not len(curve.time_ns):
        return None
    top = int(np.argmax(curve.allocated))
    return Peak(int(curve.time_ns[top]), int(curve.allocated[top]), int(curve.event[top]))


def thinned(held: Int64, most: int) -> Int64:
    """Positions of at most `most` points: of each of equal runs the first, lowest, highest and last."""
    if len(held) <= most:
        return np.arange(len(held))
    runs = np.array_split(np.arange(len(held)), most // 4)
    return np.unique([(run[0], run[held[run].argmin()], run[held[run].argmax()], run[-1]) for run in runs])


def allocated_bytes(trace: Trace) -> Int64 | None:
    """Bytes that each event allocated itself, released or not; None without allocator records."""
    records = trace.allocations
    if records is None:
        return None
    rows = np.flatnonzero((records.nbytes > 0) & (records.event >= 0))
    return sums(records.event[rows], records.nbytes[rows], len(trace))


def largest_kinds(trace: Trace, device: Device, count: int = 20) -> list[AllocationGroup]:
    """Allocations grouped by op, calling op, line and purpose; by the largest of each, the largest first."""
    records = trace.allocations
    if records is None or not len(rows := _by_size(trace, records, device)):
        return []
    event = records.event[rows]
    columns = [
        np.append(trace.name, -1)[event],
        np.append(trace.name, -1)[callers(trace, event)],
        lines_of_records(trace, records)[rows],
        categories(trace)[rows],
    ]
    number, first, size = number_combinations(columns)
    kept = np.arange(min(size, count))
    total, counts = sums(number, records.nbytes[rows], size), np.bincount(number, minlength=size)
    blocks = _blocks(trace, records, rows[first[kept]])
    return [AllocationGroup(block, int(counts[at]), int(total[at])) for at, block in enumerate(blocks)]


def callers(trace: Trace, event: Int32) -> Int32:
    """For each of these events the op that called it, -1 without one."""
    parent = np.append(nesting(trace).parent, np.int32(-1))
    kind = np.append(trace.kind, np.int8(OP))
    caller = parent[event]
    while np.any(looking := kind[caller] != OP):
        caller = np.where(looking, parent[caller], caller)
    return caller


def _by_size(trace: Trace, records: Allocations, device: Device) -> Int64:
    """The allocations of a device, the largest first; of equal ones the earlier first."""
    rows = rows_of_device(trace, records, device)
    rows = rows[records.nbytes[rows] > 0]
    return rows[np.argsort(-records.nbytes[rows], kind="stable")]


def _blocks(trace: Trace, records: Allocations, rows: Int64) -> list[Allocation]:
    released = releases_of(trace, records)[rows].tolist()
    category = categories(trace)[rows].tolist()
    line = lines_of_records(trace, records)[rows].tolist()
    return [
        Allocation(
            nbytes=int(records.nbytes[row]),
            allocated_ns=int(records.time_ns[row]),
            released_ns=int(records.time_ns[release]) if release >= 0 else None,
            event=int(records.event[row]),
            category=Category(kind),
            line=at,
        )
        for row, release, kind, at in zip(rows.tolist(), released, category, line, strict=True)
    ]


def rows_of_device(trace: Trace, records: Allocations, device: Device) -> Int64:
    """The allocator's events of one device in one process."""
    return np.flatnonzero(is_of_device(trace, records, device))


def lines_of_records(trace: Trace, records: Allocations) -> Int32:
    """For each allocator record the line that caused it, as a position in `Attribution.lines`; -1 if none is known."""
    caused = attribution(trace)
    by_event = np.append(caused.line, np.int32(-1))[records.event]
    return np.where(caused.allocation_line >= 0, caused.allocation_line, by_event)


def line_of_most(trace: Trace, records: Allocations, rows: Int64) -> tuple[SourceLine | None, int]:
    """The line that allocated the most bytes of the blocks at `rows`, and those bytes; None and 0 if none is known."""
    caused, line = attribution(trace), lines_of_records(trace, records)[rows]
    held = sums(line[line >= 0], records.nbytes[rows[line >= 0]], len(caused.lines))
    return (caused.lines[int(held.argmax())], int(held.max())) if held.any() else (None, 0)


@dataclass(frozen=True, eq=False)
class AtPeak:
    """Blocks of the device that held the most, at the moment of its peak."""

    time_ns: int
    nbytes: int
    #: Positions of their allocations.
    rows: Int64
    #: For each allocator record the position of its release, or -1.
    release: Int64

    def is_released(self, rows: Int64) -> Bool:
        """Which of these blocks were released later in the recording."""
        released: Bool = self.release[rows] >= 0
        return released


@once_a_trace
def held_at_peak(trace: Trace) -> AtPeak | None:
    """The blocks at the highest peak of any device; None without allocator records."""
    records = trace.allocations
    tops = [(top, device) for device in memory_devices(trace) if (top := peak(memory_curve(trace, device))) is not None]
    if records is None or not tops:
        return None
    top, device = max(tops, key=lambda pair: pair[0].nbytes)
    rows, release = rows_of_device(trace, records, device), releases_of(trace, records)
    rows = rows[(records.nbytes[rows] > 0) & (records.time_ns[rows] <= top.time_ns)]
    until = np.where(release[rows] >= 0, records.time_ns[release[rows]], np.iinfo(np.int64).max)
    return AtPeak(top.time_ns, top.nbytes, rows[until > top.time_ns], release)
