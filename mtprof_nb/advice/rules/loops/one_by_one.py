"""Optimizers that update one parameter after the other."""

from __future__ import annotations

import numpy as np

from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.costs import counted_ops
from mtprof_nb.analysis.devices.kernel_owners import kernel_owners
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.nesting import is_among
from mtprof_nb.analysis.program_time.recorded_time import of_recorded
from mtprof_nb.analysis.program_time.recording_cost import recording_ns
from mtprof_nb.analysis.program_time.spent_time import with_nested
from mtprof_nb.model.intervals import covered_length
from mtprof_nb.model.trace import OPTIMIZER, SCOPE, Bool, Int64, Trace

_STEP = "Optimizer.step#"
#: Optimizers of torch that can update all parameters in one op.
_FUSED = ("Adam", "AdamW", "SGD", "Adagrad")
#: Steps with fewer ops than this are short already.
_LEAST_OPS = 40


@rule
def parameters_one_by_one(trace: Trace) -> Finding | None:
    """Find an optimizer that runs a few ops for each parameter, where torch has a fused one.

    The passes of a closure, as those of Lightning's trainer, run inside a step and do not count.
    """
    steps = np.flatnonzero((trace.kind == SCOPE) & trace.where_name(lambda name: name.startswith(_STEP)))
    ops = counted_ops(trace) & (trace.phase == OPTIMIZER)
    names = {trace.names[name] for name in set(trace.name[steps].tolist())}
    kinds = {name.removeprefix(_STEP).partition(".")[0] for name in names}
    if len(kinds) != 1 or not kinds <= set(_FUSED) or int(ops.sum()) < _LEAST_OPS * len(steps):
        return None
    if np.any(ops & trace.where_name(lambda name: "_foreach" in name or "_fused" in name)):
        return None
    inside = with_nested(trace, is_among(trace, steps)) & (trace.phase == OPTIMIZER)
    ns, kind = _updating_ns(trace, steps, inside), kinds.pop()
    line, lines = int(attribution(trace).line[steps[0]]), attribution(trace).lines
    return Finding(
        f"{kind} updates one parameter after the other",
        f"{units.plural(len(steps), 'step')} of the optimizer ran {units.plural(int(ops.sum()), 'op')}, "
        f"in {of_recorded(trace, ns)}.",
        f"optimizer = torch.optim.{kind}(model.parameters(), …, fused=True)",
        lines[line] if line >= 0 else None,
        at_most_ns=max(ns - recording_ns(trace, inside), 0),
    )


def _updating_ns(trace: Trace, steps: Int64, inside: Bool) -> int:
    """The time of the steps without the passes inside them, and of the work on devices that `inside` launched."""
    owner = kernel_owners(trace)
    launched = np.flatnonzero(trace.is_device_work & (owner >= 0) & inside[owner])
    starts, ends = [trace.start_ns[launched]], [trace.end_ns[launched]]
    passes = np.flatnonzero(counted_ops(trace) & (trace.phase != OPTIMIZER))
    begun, ended = trace.start_ns[passes], trace.end_ns[passes]
    for start, end in zip(trace.start_ns[steps].tolist(), trace.end_ns[steps].tolist(), strict=True):
        own = slice(*np.searchsorted(begun, (start, end)))
        begin, finish = (begun[own][0], ended[own].max()) if len(begun[own]) else (end, end)
        starts.append(np.array([start, finish]))
        ends.append(np.array([begin, max(end, finish)]))
    start_ns, end_ns = np.concatenate(starts), np.concatenate(ends)
    order = np.argsort(start_ns, kind="stable")
    return covered_length(start_ns[order], end_ns[order])
