"""Tensors that are made on the host and then moved to a device."""

from __future__ import annotations

import numpy as np

from mtprof_nb.advice.finding import CERTAIN, Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.costs import op_costs
from mtprof_nb.analysis.nesting import is_among
from mtprof_nb.analysis.program_time.gaps import outermost_ops
from mtprof_nb.analysis.program_time.recorded_time import of_recorded, slowest_line
from mtprof_nb.analysis.program_time.spent_time import saved_ns, spent_ns, with_callers, with_nested
from mtprof_nb.model.trace import COPY, Bool, Int64, Trace

_MAKERS = {
    f"aten::{name}"
    for name in ("zeros", "ones", "full", "rand", "randn", "randint", "randperm", "arange", "linspace", "eye", "normal")
}
_LEAST_TENSORS = 4
_FIX = "x = torch.randn(shape, device=device)  # instead of torch.randn(shape).to(device)"


@rule
def made_on_host(trace: Trace) -> Finding | None:
    """Find ops that make a tensor on the host, each followed at once by the op that copies one to a device."""
    makers = _followed_by_copy(trace)
    if len(makers) < _LEAST_TENSORS:
        return None
    chosen = is_among(trace, [makers, _next_ops(trace)[makers]])
    ns = spent_ns(trace, chosen)
    return Finding(
        "Tensors are made on the host and moved to the device",
        f"{units.plural(len(makers), 'tensor')}: making and moving them takes {of_recorded(trace, ns)}.",
        _FIX,
        slowest_line(trace, with_nested(trace, chosen)),
        found_ns=ns,
        at_most_ns=saved_ns(trace, chosen),
        certainty=CERTAIN,
    )


def _followed_by_copy(trace: Trace) -> Int64:
    """The outermost ops that make a tensor without a kernel, right before one that moves a tensor to a device."""
    on_device, outer = op_costs(trace).device_ns, outermost_ops(trace)
    if on_device is None:
        return np.empty(0, np.int64)
    is_maker = trace.where_name(_MAKERS.__contains__)
    makers = outer[is_maker[outer] & (on_device[outer] == 0)]
    after = _next_ops(trace)[makers]
    moves = trace.where_name("aten::to".__eq__)[after] & _copying_to_device(trace)[after]
    followed: Int64 = makers[(after >= 0) & moves]
    return followed


def _next_ops(trace: Trace) -> Int64:
    """For each outermost op the next one of its thread, or -1."""
    next_op, outer = np.full(len(trace), -1, np.int64), outermost_ops(trace)
    for track in set(trace.track[outer].tolist()):
        rows = outer[trace.track[outer] == track]
        next_op[rows[:-1]] = rows[1:]
    return next_op


def _copying_to_device(trace: Trace) -> Bool:
    """The ops that launched a copy from the host to a device, and those around them."""
    if trace.launcher is None:
        return np.zeros(len(trace), np.bool_)
    copies = (trace.kind == COPY) & trace.where_name(lambda name: "HtoD" in name or "HostToDevice" in name)
    return with_callers(trace, trace.launcher[copies])
