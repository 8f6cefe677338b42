"""Time that chosen ops took, on the host and on devices."""

from __future__ import annotations

from mtprof_nb.analysis.costs import counted_ops, op_costs
from mtprof_nb.analysis.nesting import nesting
from mtprof_nb.model.trace import Bool, Trace


def spent_ns(trace: Trace, chosen: Bool) -> int:
    """The self time of the chosen counted ops on the host, and that of their kernels."""
    costs, rows = op_costs(trace), counted_ops(trace) & chosen
    on_device = costs.self_device_ns[rows].sum() if costs.self_device_ns is not None else 0
    return int(costs.self_ns[rows].sum() + on_device)


def with_nested(trace: Trace, chosen: Bool) -> Bool:
    """The chosen events, and all that are nested in them."""
    inside, nested = chosen.copy(), nesting(trace)
    for level in nested.levels()[1:]:
        inside[level] |= inside[nested.parent[level]]
    return inside


def with_backward(trace: Trace, chosen: Bool) -> Bool:
    """The chosen events with all nested in them, and what the backward pass ran for these."""
    inside = with_nested(trace, chosen)
    return inside | with_nested(trace, (trace.forward >= 0) & inside[trace.forward])
