"""Allocations of a file, its `[memory]` instants, and garbage collections, which this package writes."""

from __future__ import annotations

import numpy as np

from mtprof_nb.building.allocator_records import owns_memory
from mtprof_nb.building.thread_intervals import ThreadIntervals
from mtprof_nb.model.schema import TIMES, Columns, Int32
from mtprof_nb.model.trace import Allocations, Collections
from mtprof_nb.reading.spans.tables import GrowingColumns

#: c10's numbers of device types.
_DEVICES = {0: "CPU", 1: "CUDA", 6: "CUDA", 9: "XLA", 12: "XPU", 13: "MPS", 14: "META", 19: "MTIA", 20: "NPU"}
_MOST_INDEX = 127


def allocations(records: GrowingColumns, track: Int32, made: Columns) -> Columns:
    """The allocator's records in order of time, owned by the ops and scopes that were running, and all devices.

    `track` has the track of each record. Totals go on from before the recording, as they stand in the file.
    """
    order = np.argsort(records.whole("at_ns"), kind="stable")
    facts = ("at_ns", "nbytes", "total", "address", "device_number", "device_index", "reserved")
    at_ns, nbytes, total, address, device_number, index, reserved = (records.whole(fact)[order] for fact in facts)
    distinct, place = np.unique(device_number, return_inverse=True)
    names = [_DEVICES.get(number, "other device") for number in distinct.tolist()]
    devices = tuple(dict.fromkeys((*made["devices"], *names)))
    device = np.array([devices.index(name) for name in names] or [0], np.int8)
    track = track[order]
    end_ns = made["start_ns"] + made["duration_ns"]
    intervals = ThreadIntervals(made["start_ns"], end_ns, made["track"])
    owner = intervals.running(owns_memory(made["kind"], made["is_async"]), track, at_ns)
    found = Allocations(
        time_ns=at_ns,
        nbytes=nbytes,
        total=total,
        # Recordings of 2021 do not tell addresses.
        address=np.maximum(address, 0),
        event=owner.astype(np.int32),
        track=track,
        device=device[place],
        device_index=np.where((index >= 0) & (index <= _MOST_INDEX), index, 0).astype(np.int8),
        reserved=reserved if (reserved > 0).any() else None,
    )
    return {"allocations": found, "devices": devices}


def collections(found: GrowingColumns, track: Int32, moved_ns: int) -> Collections:
    """The collections in order of time, later by `moved_ns`; `track` has the track of each."""
    made = Collections(
        start_ns=found.whole("start_ns") + moved_ns,
        duration_ns=found.whole("duration_ns").clip(0, TIMES.limit - 1),
        generation=found.whole("generation").clip(0, 2),
        track=track,
    )
    return made.take(np.argsort(made.start_ns, kind="stable"))
