"""Conversions of element type that are undone again."""

from __future__ import annotations

from collections import Counter

import numpy as np

from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.causes.recorded_time import dearest_line, recorded_ns
from mtprof_nb.analysis.causes.spent_time import spent_ns
from mtprof_nb.analysis.causes.tensor_inputs import tensors
from mtprof_nb.analysis.costs import counted_ops, op_costs
from mtprof_nb.model.trace import FORWARD, OTHER, RUNTIME, Bool, Int64, Trace

#: Types of mixed precision, whose conversions are there on purpose.
_HALF = ("half", "bfloat16", "c10::half", "c10::bfloat16", "float16")
_CONVERTERS = ("aten::to", "aten::_to_copy", "aten::type_as")
_LEAST_CONVERSIONS = 4
_FIX = """\
# keep one type: convert once, before the loop
x = x.to(dtype)"""


@rule
def converted_to_and_fro(trace: Trace) -> Finding | None:
    """Find conversions of tensors of one size from one type to another and back, outside the backward pass."""
    copies = counted_ops(trace) & trace.where_name("aten::copy_".__eq__) & np.isin(trace.phase, (FORWARD, OTHER))
    conversions = _conversions(trace, np.flatnonzero(copies & ~_moves_memory(trace)))
    counts = Counter(conversions.values())
    undone = [event for event, (old, new, size) in conversions.items() if counts[new, old, size]]
    if len(undone) < _LEAST_CONVERSIONS:
        return None
    chosen = np.isin(np.arange(len(trace)), undone)
    ns = spent_ns(trace, np.isin(np.arange(len(trace)), _outermost(trace, undone)))
    old, new, _ = conversions[undone[0]]
    return Finding(
        f"Tensors are converted from {old} to {new} and back",
        f"{units.plural(len(undone), 'conversion')} in both directions, of tensors of one size, "
        f"take {units.duration(ns)} of {units.duration(recorded_ns(trace))}.",
        _FIX,
        dearest_line(trace, chosen),
        at_most_ns=ns,
    )


def _moves_memory(trace: Trace) -> Bool:
    """Ops that copy between the host and a device, or wait there: their time is not that of a conversion."""
    found = np.zeros(len(trace), np.bool_)
    if trace.launcher is None:
        return found
    is_move = (trace.kind == RUNTIME) & trace.where_name(lambda name: "emcpy" in name or "ynchronize" in name)
    parent, event = op_costs(trace).parent, trace.launcher[is_move]
    while len(event := np.unique(event[event >= 0])):
        found[event] = True
        event = parent[event]
    return found


def _outermost(trace: Trace, copies: list[int]) -> list[int]:
    """For each copy the outermost op around it that only converts; the copy itself without one."""
    costs, outer = op_costs(trace), set()
    for copy in copies:
        event, above = copy, int(costs.parent[copy])
        while above >= 0 and trace.names[trace.name[above]] in _CONVERTERS:
            event, above = above, int(costs.parent[above])
        outer.add(event)
    return sorted(outer)


def _conversions(trace: Trace, copies: Int64) -> dict[int, tuple[str, str, int]]:
    """The conversion that each copy makes, without copies that make none."""
    if trace.shape is None or not trace.dtypes:
        return {}
    kinds = {shape: _conversion(trace, shape) for shape in set(trace.shape[copies].tolist()) if shape >= 0}
    pairs = zip(copies.tolist(), trace.shape[copies].tolist(), strict=True)
    return {event: kind for event, shape in pairs if (kind := kinds.get(shape)) is not None}


def _conversion(trace: Trace, shape: int) -> tuple[str, str, int] | None:
    """The old type, the new type and the number of elements of a copy that converts; None for another copy."""
    match tensors(trace.shapes[shape], trace.dtypes[shape]):
        case [target, source, *_] if target.dtype != source.dtype and target.elements == source.elements:
            if target.dtype not in _HALF and source.dtype not in _HALF:
                return source.dtype, target.dtype, target.elements
    return None
