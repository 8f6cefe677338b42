"""Memory over time by category, in torch's two JSON formats, and as an interactive page."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

import numpy as np

from mtprof_nb.analysis.devices.recorded_devices import Device
from mtprof_nb.analysis.memory.allocation_pairs import releases_of
from mtprof_nb.analysis.memory.memory_categories import Category, categories
from mtprof_nb.analysis.memory.memory_curve import memory_curve, memory_devices, rows_of_device
from mtprof_nb.export.atomic import replacing
from mtprof_nb.model.trace import Allocations, Int8, Int64, Trace

#: torch's numbers of what happens to a block.
PREEXISTING, CREATE, DESTROY = 1, 2, 4
SUFFIXES = (".json", ".json.gz", ".raw.json.gz", ".html")


@dataclass(frozen=True, eq=False)
class MemoryTimeline:
    """Changes of one device's blocks in order of time; a block that was there before has `time_ns` -1."""

    device: Device
    time_ns: Int64
    action: Int8
    #: Negative for a block that is destroyed.
    nbytes: Int64
    category: Int8

    def sizes(self) -> tuple[Int64, Int64]:
        """Times in microseconds, and the bytes held in each `Category`; two points where more was held between."""
        moments = np.where(self.time_ns < 0, -1, self.time_ns // 1000)
        last = np.flatnonzero(np.diff(moments, append=-2) != 0)
        shown = np.union1d(last, _summits(np.cumsum(self.nbytes), last))
        moments, held = moments[shown], np.cumsum(_by_category(self.nbytes, self.category), axis=0)[shown]
        # Preexisting blocks are shown from the first time on.
        return np.where(moments < 0, moments[1:2].max(initial=-1), moments), held


def _summits(total: Int64, last: Int64) -> Int64:
    """Position of the highest value of each run that ends at one of `last`, where it is above both ends."""
    first = np.concatenate([[0], last[:-1] + 1])
    most = np.maximum.reduceat(total, first) if len(total) else total
    ends = np.maximum(total[last], np.concatenate([[0], total[last[:-1]]])[: len(last)])
    runs = np.flatnonzero(most > ends)
    positions = [first[run] + total[first[run] : last[run] + 1].argmax() for run in runs.tolist()]
    return np.array(positions, np.int64)


def write(trace: Trace, path: str | os.PathLike[str], device: str | None = None) -> MemoryTimeline:
    """Write `timeline_for` a path as torch does, in the form of JSON that the path ends in."""
    timeline = timeline_for(trace, path, device)
    text = _text(timeline, os.fsdecode(path))
    with replacing(path) as file:
        file.write(text.encode("utf-8"))
    return timeline


def timeline_for(trace: Trace, path: str | os.PathLike[str], device: str | None = None) -> MemoryTimeline:
    """The memory of `device`, by default of the first that is not the CPU, for a file.

    Of several processes it is the first that has the device, unless `device` names one: `cuda:0 of rank 1`.
    `ValueError` where a flag was missing while recording, and for another suffix or a device not recorded.
    """
    flags = trace.recorded
    if not (flags.record_shapes and flags.profile_memory and flags.with_stack):
        msg = "record_shapes=True, profile_memory=True, with_stack=True required for memory profiling."
        raise ValueError(msg)
    name = os.fsdecode(path)
    if not name.endswith(SUFFIXES):
        msg = f"unknown format of {name!r}: let it end in one of {', '.join(SUFFIXES)}"
        raise ValueError(msg)
    return memory_timeline(trace, _wanted_device(trace, device))


def memory_timeline(trace: Trace, device: Device) -> MemoryTimeline:
    """The blocks of `device`; for a runtime that reports only totals, their changes, of unknown category."""
    if trace.allocations is None:
        return _timeline_of_totals(trace, device)
    records = trace.allocations
    rows = rows_of_device(trace, records, device)
    before = _preexisting(trace, records, rows)
    # A block without an address cannot be followed to its release.
    category = np.where(records.address == 0, Category.UNKNOWN, categories(trace))[rows]
    time_ns, nbytes, category = _ending_windows(records, rows, category)
    action = np.where(nbytes > 0, CREATE, DESTROY)
    return MemoryTimeline(
        device,
        time_ns=np.concatenate([np.full(len(before), -1), time_ns]),
        action=np.concatenate([np.full(len(before), PREEXISTING), action]).astype(np.int8),
        nbytes=np.concatenate([before, nbytes]),
        category=np.concatenate([np.full(len(before), Category.UNKNOWN), category]).astype(np.int8),
    )


def _ending_windows(records: Allocations, rows: Int64, category: Int64) -> tuple[Int64, Int64, Int64]:
    """Times, bytes and categories; blocks that a window left are destroyed where the next one counts from zero."""
    time_ns, nbytes, total = records.time_ns[rows], records.nbytes[rows], records.total[rows]
    starts = np.flatnonzero(total[1:] != total[:-1] + nbytes[1:]) + 1
    changes = _by_category(nbytes, category)
    left = np.diff(np.cumsum(changes, axis=0)[starts - 1], axis=0, prepend=0)
    window, kind = np.nonzero(left)
    at = starts[window]
    return (
        np.insert(time_ns, at, time_ns[at]),
        np.insert(nbytes, at, -left[window, kind]),
        np.insert(category, at, kind),
    )


def _by_category(nbytes: Int64, category: Int8 | Int64) -> Int64:
    """A row for each change, with its bytes in the column of its category."""
    changes = np.zeros((len(nbytes), len(Category)), np.int64)
    changes[np.arange(len(changes)), category] = nbytes
    return changes


def _preexisting(trace: Trace, records: Allocations, rows: Int64) -> Int64:
    """Sizes of the preexisting blocks: those that were released, and the rest by the allocator's count."""
    gone = -records.nbytes[rows][(records.nbytes[rows] < 0) & (releases_of(trace, records)[rows] < 0)]
    counted = int(records.total[rows[0]] - records.nbytes[rows[0]]) if len(rows) else 0
    rest = counted - int(gone.sum())
    return np.append(gone, rest) if rest > 0 else gone


def _timeline_of_totals(trace: Trace, device: Device) -> MemoryTimeline:
    curve = memory_curve(trace, device)
    nbytes = np.diff(curve.allocated, prepend=0)
    time_ns = curve.time_ns.copy()
    time_ns[:1] = -1
    action = np.where(nbytes > 0, CREATE, DESTROY).astype(np.int8)
    action[:1] = PREEXISTING
    changed = nbytes != 0
    unknown = np.full(int(changed.sum()), Category.UNKNOWN, np.int8)
    return MemoryTimeline(device, time_ns[changed], action[changed], nbytes[changed], unknown)


def _wanted_device(trace: Trace, wanted: str | None) -> Device:
    recorded = memory_devices(trace)
    known = [*recorded, Device("CPU", 0)]
    if wanted is None:
        return next((device for device in known if device.name != "CPU"), known[0])
    name, _, index = str(wanted).lower().partition(":")
    name = "npu" if name in ("privateuseone", "privateuse1") else name
    place = name.upper(), int(index) if index.isdecimal() and name != "cpu" else 0
    named = [device for device in known if str(device) == str(wanted)]
    device = named or [device for device in known if (device.name, device.index) == place]
    if not device:
        names = ", ".join(map(str, recorded)) or "none at all"
        msg = f"no memory of device {str(wanted)!r} was recorded: recorded are {names}"
        raise ValueError(msg)
    return device[0]


def _text(timeline: MemoryTimeline, name: str) -> str:
    if name.endswith(".raw.json.gz"):
        columns = (timeline.time_ns, timeline.action, timeline.nbytes, timeline.category)
        return json.dumps(list(zip(*(column.tolist() for column in columns), strict=True)))
    moments, held = timeline.sizes()
    # torch draws the categories upwards from a column of zeros.
    return json.dumps([moments.tolist(), np.pad(held, ((0, 0), (1, 0))).tolist()])
