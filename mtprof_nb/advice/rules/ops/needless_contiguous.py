"""Copies by `contiguous()` for ops that take any layout."""

from __future__ import annotations

import numpy as np

from mtprof_nb.advice.causes.tensor_inputs import is_pointwise, largest_inputs
from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.costs import op_costs
from mtprof_nb.analysis.nesting import is_among
from mtprof_nb.analysis.program_time.gaps import outermost_ops
from mtprof_nb.analysis.program_time.recorded_time import of_recorded, slowest_line
from mtprof_nb.analysis.program_time.spent_time import saved_ns, spent_ns, with_backward
from mtprof_nb.model.trace import FORWARD, OTHER, Bool, Int64, Trace

#: Reductions take any layout, too.
_REDUCTIONS = {f"aten::{name}" for name in ("sum", "mean", "amax", "amin", "norm", "std", "var", "any", "all")}
#: Ops that need the copy, and within how many ops one of them may use it.
_NEED_IT, _LATER = ("aten::view", "aten::as_strided", "aten::view_as_complex"), 8
_LEAST_COPIES = 4


@rule
def needless_contiguous(trace: Trace) -> Finding | None:
    """Find copies by `contiguous()` whose result goes at once to an op that takes any layout; needs shapes."""
    chosen, following = _needless(trace)
    if int(chosen.sum()) < _LEAST_COPIES:
        return None
    inside = with_backward(trace, chosen)
    ns = spent_ns(trace, inside)
    return Finding(
        "contiguous() copies tensors for ops that take any layout",
        f"{units.plural(int(chosen.sum()), 'call')} of contiguous() that copy take {of_recorded(trace, ns)}; "
        "the op that follows takes a tensor as it is.",
        "y = x.t() * 2  # without .contiguous()",
        slowest_line(trace, inside),
        # With less new memory, the op that follows may be faster, too.
        found_ns=ns,
        at_most_ns=saved_ns(trace, with_backward(trace, chosen | following)),
    )


def _needless(trace: Trace) -> tuple[Bool, Bool]:
    """Calls of `contiguous` that copy for the next op of their thread, which takes any layout; and these next ops."""
    needless, following = np.zeros((2, len(trace)), np.bool_)
    outer = outermost_ops(trace)
    clones = trace.where_name("aten::clone".__eq__)
    calls_clone = is_among(trace, op_costs(trace).parent[clones])
    is_copy = trace.where_name("aten::contiguous".__eq__) & calls_clone
    is_copy &= np.isin(trace.phase, (FORWARD, OTHER))
    takes_any = is_pointwise(trace) | trace.where_name(_REDUCTIONS.__contains__)
    needs, shape = trace.where_name(_NEED_IT.__contains__), largest_inputs(trace)[0]
    if not is_copy.any():
        return needless, following
    for track in set(trace.track[outer].tolist()):
        rows: Int64 = outer[trace.track[outer] == track]
        for at in np.flatnonzero(is_copy[rows]).tolist():
            later = rows[at + 1 : at + 1 + _LATER]
            same_shape = later[shape[later] == shape[rows[at]]]
            is_next = shape[rows[at]] >= 0 and len(same_shape) and same_shape[0] == later[0]
            if is_next and takes_any[same_shape[0]] and not needs[same_shape].any():
                needless[rows[at]] = following[same_shape[0]] = True
    return needless, following
