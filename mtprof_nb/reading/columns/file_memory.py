"""Allocations of a file, its `[memory]` instants, and garbage collections, which this package writes."""

from __future__ import annotations

import numpy as np

from mtprof_nb.building.allocator_records import UnownedRecords
from mtprof_nb.model.schema import TIMES
from mtprof_nb.model.trace import Allocations, Collections
from mtprof_nb.reading.columns.chosen_spans import ChosenSpans

#: c10's numbers of device types.
_DEVICES = {0: "CPU", 1: "CUDA", 6: "CUDA", 9: "XLA", 12: "XPU", 13: "MPS", 14: "META", 19: "MTIA", 20: "NPU"}
_MOST_INDEX = 127


def unowned_records(file: ChosenSpans, moved_ns: int) -> UnownedRecords:
    """The allocator's records in order of time, later by `moved_ns`. Totals go on from before the recording."""
    records = file.collector.allocations
    order = np.argsort(records.whole("at_ns"), kind="stable")
    facts = ("at_ns", "nbytes", "total", "address", "device_number", "device_index", "reserved", "lane")
    at_ns, nbytes, total, address, device_number, index, reserved, lane = (records.whole(fact)[order] for fact in facts)
    distinct, device = np.unique(device_number, return_inverse=True)
    allocations = Allocations(
        time_ns=at_ns + moved_ns,
        nbytes=nbytes,
        total=total,
        # Recordings of 2021 have no addresses.
        address=np.maximum(address, 0),
        event=np.full(len(order), -1, np.int32),
        track=file.host_tracks[lane],
        device=device.astype(np.int8),
        device_index=np.where((index >= 0) & (index <= _MOST_INDEX), index, 0).astype(np.int8),
        reserved=reserved if (reserved > 0).any() else None,
    )
    return UnownedRecords(allocations, [_DEVICES.get(number, "other device") for number in distinct.tolist()])


def collections(file: ChosenSpans, moved_ns: int) -> Collections:
    """The collections in order of time, later by `moved_ns`."""
    collected = file.collector.collections
    made = Collections(
        start_ns=collected.whole("start_ns") + moved_ns,
        duration_ns=collected.whole("duration_ns").clip(0, TIMES.limit - 1),
        generation=collected.whole("generation").clip(0, 2),
        track=file.host_tracks[collected.whole("lane")],
    )
    return made.take(np.argsort(made.start_ns, kind="stable"))
