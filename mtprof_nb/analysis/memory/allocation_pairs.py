"""Blocks of memory: pairs of an allocation and its release."""

from __future__ import annotations

import numpy as np

from mtprof_nb.model.trace import Allocations, Int8, Int32, Int64, Trace


def releases(records: Allocations, process: Int32 | None = None) -> Int64:
    """For each allocation the position of its release, for each release that of its allocation; -1 where unseen.

    `process` is each record's, where the records are of several: their addresses may be equal.
    """
    partner = np.full(len(records), -1, np.int64)
    known = np.flatnonzero(records.address != 0)
    keys: list[Int64 | Int32 | Int8] = [records.address, records.device_index, records.device]
    keys += [] if process is None else [process]
    order = known[np.lexsort((known, *(column[known] for column in keys)))]
    earlier, later = order[:-1], order[1:]
    same_block = np.logical_and.reduce([column[earlier] == column[later] for column in keys])
    pairs = np.flatnonzero(same_block & (records.nbytes[earlier] > 0) & (records.nbytes[later] < 0))
    partner[earlier[pairs]] = later[pairs]
    partner[later[pairs]] = earlier[pairs]
    return partner


def releases_of(trace: Trace, records: Allocations) -> Int64:
    """The `releases` of the trace's records, each process on its own."""
    return releases(records, trace.processes_of(records.track) if len(trace.processes) > 1 else None)
