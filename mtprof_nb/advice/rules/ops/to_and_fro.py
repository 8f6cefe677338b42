"""Conversions of element type that are undone again."""

from __future__ import annotations

from collections import Counter
from functools import partial

import numpy as np

from mtprof_nb.advice.causes.tensor_inputs import TensorInput, tensors, with_inputs
from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.costs import counted_ops, op_costs
from mtprof_nb.analysis.nesting import is_among
from mtprof_nb.analysis.program_time.recorded_time import recorded_ns, slowest_line
from mtprof_nb.analysis.program_time.spent_time import saved_ns, spent_ns, with_backward, with_callers, with_nested
from mtprof_nb.model.trace import FORWARD, OTHER, RUNTIME, Bool, Int64, Trace

#: Types of mixed precision, whose conversions are there on purpose.
_HALF = ("half", "bfloat16", "c10::half", "c10::bfloat16", "float16")
_FLOATS = ("float", "float32", "double", "float64", "c10::complex<float>", "c10::complex<double>")
#: Types of 8 bytes or more; types of 16 bytes are last.
_LONG = ("long int", "int64", "double", "float64", "c10::complex<float>", "c10::complex<double>")
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
    chosen, converting = (is_among(trace, rows) for rows in (undone, _outermost(trace, undone)))
    between = _between(trace, {event: conversions[event] for event in undone}) & ~with_nested(trace, converting)
    ns, between_ns = spent_ns(trace, converting), spent_ns(trace, between)
    old, new, _ = conversions[undone[0]]
    others = f", and ops on these tensors between them {units.duration(between_ns)}," if between_ns else ""
    return Finding(
        f"Tensors are converted from {old} to {new} and back",
        f"{units.plural(len(undone), 'conversion')} in both directions, of tensors of one size, "
        f"take {units.duration(ns)}{others} of {units.duration(recorded_ns(trace))}.",
        _FIX,
        slowest_line(trace, chosen),
        found_ns=ns,
        at_most_ns=saved_ns(trace, with_backward(trace, converting | between)),
    )


def _between(trace: Trace, conversions: dict[int, tuple[str, str, int]]) -> Bool:
    """The ops on the results of conversions that are undone: between one and the next that undoes it.

    Ops on the type that the fix gives up run on the other one then, which can be several times as fast; those on the
    other find their memory in the processor's cache. The latter count if they have as many elements as one of them.
    """
    between, is_op = np.zeros(len(trace), np.bool_), counted_ops(trace)
    for old, new in {kind[:2] for kind in conversions.values()}:
        kinds = {event: kind for event, kind in conversions.items() if {*kind[:2]} == {old, new}}
        rows, begins = np.array([*kinds]), np.array([kind[1] == new for kind in kinds.values()])
        sizes = None if new == _given_up(old, new) else {kind[2] for kind in kinds.values()}
        ops = np.flatnonzero(is_op & with_inputs(trace, partial(_has, new, sizes)))
        for track in set(trace.track[rows].tolist()):
            is_own, own = trace.track[rows] == track, ops[trace.track[ops] == track]
            last = np.searchsorted(rows[is_own], own) - 1
            between[own] |= (last >= 0) & begins[is_own][last]
    return between


def _has(dtype: str, sizes: set[int] | None, inputs: list[TensorInput]) -> bool:
    return any(one.dtype == dtype and (sizes is None or one.elements in sizes) for one in inputs)


def _given_up(old: str, new: str) -> str:
    """The type that a program without these conversions does not use: integers, or else the larger type."""
    return max(old, new, key=lambda name: (name not in _FLOATS, _LONG.index(name) if name in _LONG else -1))


def _moves_memory(trace: Trace) -> Bool:
    """Ops that copy between the host and a device, or wait there: they do not take the time to convert."""
    if trace.launcher is None:
        return np.zeros(len(trace), np.bool_)
    is_move = (trace.kind == RUNTIME) & trace.where_name(lambda name: "emcpy" in name or "ynchronize" in name)
    return with_callers(trace, trace.launcher[is_move])


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
