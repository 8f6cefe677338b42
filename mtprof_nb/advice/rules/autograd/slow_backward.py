"""Lines whose backward pass takes many times their forward pass, because of one op with a known replacement."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.costs import counted_ops, op_costs
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.lines.line_costs import line_costs
from mtprof_nb.analysis.program_time.recorded_time import recorded_ns
from mtprof_nb.analysis.program_time.spent_time import saved_ns, with_backward
from mtprof_nb.model.trace import BACKWARD, OPTIMIZER, Trace

_TIMES_SLOWER = 4
#: The backward op has to take at least this part of the line's backward pass.
_OF_LINE = 0.5


class _Cause(NamedTuple):
    """Why the backward pass of an op is slow, and its replacement."""

    reason: str
    fix: str
    #: Whether the optimizer has less to do afterwards, too.
    saves_optimizer: bool = False
    #: Whether this is so on devices alone: on a CPU, the fix can make it slower.
    on_devices: bool = False


_CAUSES = {
    "SelectBackward0": _Cause(
        "each index makes a gradient as large as the whole tensor",
        "rows = x.unbind(0)  # once before the loop; then rows[i] instead of x[i]",
    ),
    "SliceBackward0": _Cause(
        "each slice makes a gradient as large as the whole tensor",
        "parts = x.split(size)  # once before the loop; then parts[i] instead of x[a:b]",
    ),
    "IndexBackward0": _Cause(
        "the gradient of indexing by a tensor is added up element by element",
        "rows = x.index_select(0, index)  # or torch.nn.functional.embedding(index, x), instead of x[index]",
        on_devices=True,
    ),
    "EmbeddingBackward0": _Cause(
        "the gradient is as large as the whole table, whatever few rows were used",
        "table = nn.Embedding(count, size, sparse=True)  # with optim.SparseAdam or optim.SGD",
        saves_optimizer=True,
    ),
}


@rule
def slow_backward(trace: Trace) -> Finding | None:
    """Find the slowest line whose backward takes over four times its forward, most of it for one known op."""
    costs = line_costs(trace)
    backward_ns = costs.backward_ns[: len(costs.lines)]
    is_slow = backward_ns > _TIMES_SLOWER * np.maximum(costs.forward_ns[: len(costs.lines)], 1)
    for number in np.argsort(-backward_ns, kind="stable")[:5].tolist():
        if is_slow[number] and (cause := _cause(trace, number, int(backward_ns[number]))):
            return _finding(trace, number, int(costs.forward_ns[number]), int(backward_ns[number]), cause)
    return None


def _finding(trace: Trace, line: int, forward_ns: int, backward_ns: int, cause: _Cause) -> Finding:
    chosen = counted_ops(trace) & (attribution(trace).line == line)
    if cause.saves_optimizer:
        chosen |= trace.phase == OPTIMIZER
    return Finding(
        "The backward pass of this line is far slower than its forward pass",
        f"Backward {units.duration(backward_ns)}, forward {units.duration(forward_ns)}, of "
        f"{units.duration(recorded_ns(trace))}: {cause.reason}.",
        cause.fix,
        attribution(trace).lines[line],
        found_ns=forward_ns + backward_ns,
        at_most_ns=saved_ns(trace, with_backward(trace, chosen)),
    )


def _cause(trace: Trace, line: int, backward_ns: int) -> _Cause | None:
    """The known op that, with what it calls, takes most of the line's backward pass."""
    on_line = (attribution(trace).line == line) & (trace.phase == BACKWARD)
    causes = {name: cause for name, cause in _CAUSES.items() if trace.is_device_work.any() or not cause.on_devices}
    for name, cause in causes.items():
        rows = on_line & trace.where_name(name.__eq__)
        if int(op_costs(trace).total_ns[rows].sum()) >= _OF_LINE * backward_ns:
            return cause
    return None
