"""The direct children of an event, and the kernels that it launched."""

from __future__ import annotations

import numpy as np

from mtprof_nb.analysis.costs import averaged_costs
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.trace import Int32, Trace


class _Belongings:
    """Events sorted by their owner, for a binary search."""

    def __init__(self, owner: Int32) -> None:
        self._order = np.argsort(owner, kind="stable").astype(np.int32)
        self._owner = owner[self._order]

    def of(self, position: int) -> list[int]:
        first, last = np.searchsorted(self._owner, (position, position + 1))
        positions: list[int] = self._order[first:last].tolist()
        return positions


@once_a_trace
def _by_parent(trace: Trace) -> _Belongings:
    costs = averaged_costs(trace)
    return _Belongings(np.where(costs.counted, costs.parent, np.int32(-1)))


@once_a_trace
def _by_launcher(trace: Trace) -> _Belongings:
    if trace.launcher is None:
        return _Belongings(np.full(len(trace), -1, np.int32))
    costs = averaged_costs(trace)
    # An op that is folded leaves its kernels to the op that it is folded into.
    launcher = np.where(costs.counted, np.arange(len(trace), dtype=np.int32), costs.parent)[trace.launcher]
    return _Belongings(np.where(trace.launcher >= 0, launcher, np.int32(-1)))


def children(trace: Trace, position: int) -> list[int]:
    """Positions of the counted events that ran directly inside the one at `position`, in order of start."""
    return _by_parent(trace).of(position)


def launched(trace: Trace, position: int) -> list[int]:
    """Positions of the kernels and runtime calls that the event at `position` launched."""
    return _by_launcher(trace).of(position)
