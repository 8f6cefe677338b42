"""Optimizers that update one parameter after the other."""

from __future__ import annotations

import numpy as np

from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.causes.recorded_time import recorded_ns
from mtprof_nb.analysis.causes.spent_time import spent_ns
from mtprof_nb.analysis.costs import counted_ops
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.model.trace import OPTIMIZER, SCOPE, Trace

_STEP = "Optimizer.step#"
#: Optimizers of torch that can update all parameters in one op.
_FUSED = ("Adam", "AdamW", "SGD", "Adagrad")
#: Steps with fewer ops than this are short already.
_LEAST_OPS = 40


@rule
def parameters_one_by_one(trace: Trace) -> Finding | None:
    """Find an optimizer that runs a few ops for each parameter, where torch has a fused one."""
    steps = np.flatnonzero((trace.kind == SCOPE) & trace.where_name(lambda name: name.startswith(_STEP)))
    ops = counted_ops(trace) & (trace.phase == OPTIMIZER)
    names = {trace.names[name] for name in set(trace.name[steps].tolist())}
    kinds = {name.removeprefix(_STEP).partition(".")[0] for name in names}
    if len(kinds) != 1 or not kinds <= set(_FUSED) or int(ops.sum()) < _LEAST_OPS * len(steps):
        return None
    if np.any(ops & trace.where_name(lambda name: "_foreach" in name or "_fused" in name)):
        return None
    ns, kind = spent_ns(trace, np.isin(np.arange(len(trace)), steps)), kinds.pop()
    line, lines = int(attribution(trace).line[steps[0]]), attribution(trace).lines
    return Finding(
        f"{kind} updates one parameter after the other",
        f"{units.plural(len(steps), 'step')} of the optimizer ran {units.plural(int(ops.sum()), 'op')}, "
        f"in {units.duration(ns)} of {units.duration(recorded_ns(trace))}.",
        f"optimizer = torch.optim.{kind}(model.parameters(), …, fused=True)",
        lines[line] if line >= 0 else None,
        at_most_ns=ns,
    )
