"""The parameter that each op of an optimizer updates."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mtprof_nb.building.interning import intern
from mtprof_nb.building.thread_intervals import ThreadIntervals
from mtprof_nb.model.trace import OP, OPTIMIZER, Columns, Int64

#: For rows of events, the parameter that each one has among its inputs, or None.
OwnParameters = Callable[[Int64], Sequence[str | None]]


def updated_parameters(made: Columns, intervals: ThreadIntervals, own: OwnParameters) -> Columns:
    """Columns `parameter` and `parameters`; `own` is asked for the outermost ops of optimizers.

    An op on a temporary belongs to the parameter of the ops before and after it, if both have the
    same.
    """
    is_updating = (made["phase"] == OPTIMIZER) & (made["kind"] == OP)
    parameter = np.full(len(is_updating), -1, np.int32)
    if not is_updating.any():
        return {"parameter": parameter}
    rows = np.concatenate(intervals.by_thread(is_updating))
    is_outermost = intervals.outermost(is_updating)[rows] == rows
    numbers, names = intern(_between(own(rows[is_outermost])))
    parameter[rows] = numbers[np.cumsum(is_outermost) - 1]
    return {"parameter": parameter, "parameters": names}


def _between(known: Sequence[str | None]) -> list[str | None]:
    """`known` with each gap between two ops of one parameter filled."""
    filled, last = list(known), -1
    for index, name in enumerate(known):
        if name is None:
            continue
        if last >= 0 and known[last] == name:
            filled[last:index] = [name] * (index - last)
        last = index
    return filled
