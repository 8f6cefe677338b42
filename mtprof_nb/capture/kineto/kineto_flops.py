"""Floating point operations by PyTorch's own formulas, each applied once for each distinct op and shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from mtprof_nb.capture.kineto.kineto_events import KinetoColumns
from mtprof_nb.model.trace import Int32, Int64, Shapes

Formula = Callable[..., int]


def kineto_flops(torch: Any, columns: KinetoColumns, shape: Int32, shapes: Sequence[Shapes]) -> Int64:
    """Operations of each event, -1 where there is no formula for it.

    Kineto has formulas of its own for some ops, such as `aten::add` and `aten::mul`.
    """
    registry = import_module("torch.utils.flop_counter").flop_registry
    packets = [packet for packet in registry if hasattr(packet, "_qualified_op_name")]
    known: dict[str, Formula] = {packet._qualified_op_name: registry[packet] for packet in packets}
    kineto_event = torch._C._autograd._KinetoEvent
    flops = np.fromiter(map(kineto_event.flops, columns.events), np.int64, len(columns))
    flops[flops == 0] = -1
    counted: dict[Any, int] = {}
    for row in np.flatnonzero(columns.where_name(known.__contains__) & (shape >= 0)).tolist():
        name, inputs = columns.names[columns.name[row]], shapes[shape[row]]
        scalars = columns.events[row].concrete_inputs()
        key = (name, shape[row], str(scalars))
        if key not in counted:
            counted[key] = _count(torch, name, known[name], inputs, scalars)
        flops[row] = counted[key]
    # An op inside another one with a formula is counted by that.
    flops[columns.intervals.parents(flops >= 0) >= 0] = -1
    return flops


def _count(torch: Any, name: str, formula: Formula, inputs: Sequence[Any], scalars: Sequence[Any]) -> int:
    """The formula applied to meta tensors of these shapes, -1 where it does not take them."""
    try:
        arguments = [
            torch.empty(shape, device="meta") if scalar is None and shape else scalar
            for shape, scalar in zip(inputs, scalars, strict=True)
        ]
        op = getattr(torch.ops.aten, name.removeprefix("aten::")).default
        by_name = {spec.name: value for spec, value in zip(op._schema.arguments, arguments, strict=False)}
        keywords = {spec.name for spec in op._schema.arguments if spec.kwarg_only}
        positional = [value for key, value in by_name.items() if key not in keywords]
        result = op(*positional, **{key: by_name[key] for key in keywords & by_name.keys()})
        return int(formula(*positional, out_val=result))
    except Exception:  # a formula is PyTorch's or a library's: where it fails there is no number
        return -1
