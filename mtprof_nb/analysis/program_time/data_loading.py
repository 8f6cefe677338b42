"""Calls of a DataLoader's `next`, and what ran during them."""

from __future__ import annotations

import numpy as np

from mtprof_nb.model.intervals import covered
from mtprof_nb.model.trace import SCOPE, Bool, Int64, Trace

_NEXT = "enumerate(DataLoader)#"


def loader_calls(trace: Trace) -> Int64:
    """Positions of the calls of a DataLoader's `next`."""
    return np.flatnonzero((trace.kind == SCOPE) & trace.where_name(lambda name: name.startswith(_NEXT)))


def during(trace: Trace, calls: Int64) -> Bool:
    """Which events begin on the thread of one of `calls` while it runs."""
    inside = np.zeros(len(trace), np.bool_)
    for track in set(trace.track[calls].tolist()):
        rows, own = np.flatnonzero(trace.track == track), calls[trace.track[calls] == track]
        inside[rows] = covered(trace.start_ns[own], trace.end_ns[own], trace.start_ns[rows])
    return inside
