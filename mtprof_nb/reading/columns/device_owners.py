"""The process that each device of a file belongs to, where the file has several processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mtprof_nb.model.schema import Bool, Int8, Int64
from mtprof_nb.model.trace import RUNTIME
from mtprof_nb.reading.spans.growing_columns import Numbering
from mtprof_nb.reading.spans.spans import Spans

#: Events of a device that are compared with calls, and processes that are compared, at most.
_MOST_EVENTS, _MOST_PROCESSES = 50, 64


def owners_of_lanes(
    lanes: Sequence[tuple[Any, Any]], spans: Spans, kind: Int8, on_device: Bool, process_of: Mapping[Any, int]
) -> tuple[Int64, Bool]:
    """For each lane, if it is one of a device, the position of the process whose calls launched that device's events.

    Processes of a merged file may use the same numbers for their calls, but no event begins before its launch.
    Without such evidence, it is the process with the most calls. The second array has the lanes for which several
    processes have equally much: a process that has no device yet comes first, in the order of the file.
    """
    lane, correlation, start_ns = (spans[name] for name in ("lane", "correlation", "start_ns"))
    process = np.array([process_of.get(pid, 0) for pid, _ in lanes], np.int64)
    calls = np.flatnonzero(kind == RUNTIME)
    busiest = int(np.bincount(process[lane[calls]]).argmax()) if len(calls) else 0
    calling = np.array(list(dict.fromkeys(process[np.unique(lane[calls])].tolist())), np.int64)
    if not 1 < len(calling) <= _MOST_PROCESSES:
        return np.full(len(lanes), busiest, np.int64), np.zeros(len(lanes), np.bool_)
    device = Numbering().positions([pid for pid, _ in lanes])
    events = _first_of_each(np.flatnonzero(on_device & (correlation > 0)), device[lane])
    matches = np.zeros((int(device.max()) + 1, len(calling)), np.int64)
    for place, one in enumerate(calling.tolist()):
        own = calls[(process[lane[calls]] == one) & (correlation[calls] > 0)]
        own = own[np.argsort(correlation[own], kind="stable")]
        at = np.minimum(np.searchsorted(correlation[own], correlation[events]), len(own) - 1)
        if len(own):
            is_launch = (correlation[own[at]] == correlation[events]) & (start_ns[own[at]] <= start_ns[events])
            matches[:, place] = np.bincount(device[lane[events[is_launch]]], minlength=len(matches))
    best, is_tied = _best(matches)
    return np.where(matches.max(axis=1) > 0, calling[best], busiest)[device], is_tied[device]


def _best(matches: Int64) -> tuple[Int64, Bool]:
    """The column with the most matches in each row, and the rows in which several have as many.

    Among those, the first column that no other row has yet; if there is none, the first.
    """
    most, best = matches.max(axis=1, keepdims=True), matches.argmax(axis=1)
    is_best = (matches == most) & (most > 0)
    is_tied = is_best.sum(axis=1) > 1
    is_free = np.ones(matches.shape[1], np.bool_)
    is_free[best[is_best.any(axis=1) & ~is_tied]] = False
    for row in np.flatnonzero(is_tied).tolist():
        if (is_best[row] & is_free).any():
            best[row] = (is_best[row] & is_free).argmax()
        is_free[best[row]] = False
    return best, is_tied


def _first_of_each(rows: Int64, group: Any) -> Int64:
    """The first rows of each group."""
    order = rows[np.argsort(group[rows], kind="stable")]
    begins = np.flatnonzero(np.diff(group[order], prepend=-1))
    place = np.arange(len(order)) - np.repeat(begins, np.diff(np.append(begins, len(order))))
    return order[place < _MOST_EVENTS]
