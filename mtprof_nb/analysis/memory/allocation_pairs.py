"""Blocks of memory: which release ends which allocation."""

from __future__ import annotations

import numpy as np

from mtprof_nb.model.trace import Allocations, Int64


def releases(records: Allocations) -> Int64:
    """For each allocation the position of its release, for each release that of its allocation; -1 where unseen."""
    partner = np.full(len(records), -1, np.int64)
    known = np.flatnonzero(records.address != 0)
    keys = (known, records.address[known], records.device_index[known], records.device[known])
    order = known[np.lexsort(keys)]
    earlier, later = order[:-1], order[1:]
    same_block = records.address[earlier] == records.address[later]
    same_block &= (records.device[earlier] == records.device[later]) & (
        records.device_index[earlier] == records.device_index[later]
    )
    pairs = np.flatnonzero(same_block & (records.nbytes[earlier] > 0) & (records.nbytes[later] < 0))
    partner[earlier[pairs]] = later[pairs]
    partner[later[pairs]] = earlier[pairs]
    return partner
