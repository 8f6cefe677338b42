"""Floating point operations by PyTorch's own formulas, each applied once for each distinct op and shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mtprof_nb.capture.flops.shape_flops import count_by_formula, registered_formulas
from mtprof_nb.capture.kineto.kineto_events import KinetoColumns
from mtprof_nb.model.trace import Int32, Int64, Shapes


def kineto_flops(torch: Any, columns: KinetoColumns, shape: Int32, shapes: Sequence[Shapes]) -> Int64:
    """Operations of each event, -1 where there is no formula for it.

    Kineto has formulas of its own for some ops, such as `aten::add` and `aten::mul`.
    """
    known = registered_formulas()
    kineto_event = torch._C._autograd._KinetoEvent
    flops = np.fromiter(map(kineto_event.flops, columns.events), np.int64, len(columns))
    flops[flops == 0] = -1
    counted: dict[Any, int] = {}
    for row in np.flatnonzero(columns.where_name(known.__contains__) & (shape >= 0)).tolist():
        name, inputs = columns.names[columns.name[row]], shapes[shape[row]]
        scalars = columns.events[row].concrete_inputs()
        key = (name, shape[row], str(scalars))
        if key not in counted:
            counted[key] = count_by_formula(torch, name, known[name], inputs, scalars)
        flops[row] = counted[key]
    # An op inside another one with a formula is counted by that.
    flops[columns.intervals.parents(flops >= 0) >= 0] = -1
    return flops
