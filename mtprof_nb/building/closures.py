"""Closures: `optimizer.step(closure)` runs forward and backward passes inside the step.

1. An op that a backward pass inside the same step differentiates is forward.
2. So is every op between such an op and that backward pass.
3. So is every op before the first such op that ran with autograd on: an optimizer works with autograd off.

All other ops of the step stay the optimizer's: in LBFGS, for example, the update after the closure.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mtprof_nb.building.thread_intervals import ThreadIntervals
from mtprof_nb.model.trace import BACKWARD, FORWARD, OP, OPTIMIZER, OTHER, SCOPE, Bool, Columns, Int8, Int64

OF_OPTIMIZER = "Optimizer."
_STEP = "Optimizer.step"


def with_closures(fields: Columns) -> Int8:
    """The phase of each event of `fields`, in the order of a `Trace`; ops of closures are forward, not optimizer."""
    forward, kind, names = (fields[name] for name in ("forward", "kind", "names"))
    phase: Int8 = fields["phase"]
    start_ns, end_ns = fields["start_ns"], fields["start_ns"] + fields["duration_ns"]
    backward = np.flatnonzero((phase == BACKWARD) & (forward >= 0))
    backward = backward[phase[forward[backward]] == OPTIMIZER]
    if not len(backward):
        return phase
    intervals = ThreadIntervals(start_ns, end_ns, fields["track"])
    of_optimizer = np.array([name.startswith(OF_OPTIMIZER) for name in names], np.bool_)
    scope = intervals.innermost((kind == SCOPE) & of_optimizer[fields["name"]])
    outermost = intervals.outermost((kind == OP) & (phase == OPTIMIZER))
    rows = np.flatnonzero(phase == OPTIMIZER)
    rows = rows[np.argsort(scope[rows], kind="stable")]
    backward = backward[np.lexsort((forward[backward], scope[forward[backward]]))]
    makers = forward[backward]
    with_autograd = (kind == OP) & (fields["sequence_nr"] >= 0)
    phases = phase.copy()
    for step in np.unique(scope[makers]).tolist():
        if step < 0 or not names[fields["name"][step]].startswith(_STEP):
            continue
        inside, known = (slice(*np.searchsorted(scope[some], (step, step + 1))) for some in (rows, makers))
        is_inside = start_ns[backward[known]] < end_ns[step]
        made_by, passed_ns = makers[known][is_inside], np.sort(start_ns[backward[known]][is_inside])
        for chosen in _of_closures(start_ns, rows[inside], made_by, passed_ns, outermost, with_autograd):
            phases[chosen] = np.where(kind[chosen] == OP, FORWARD, OTHER)
    return phases


def _of_closures(
    start_ns: Int64, rows: Int64, makers: Int64, passed_ns: Int64, outermost: Int64, with_autograd: Bool
) -> Iterator[Int64]:
    """The `rows` of one step that belong to each of its backward passes.

    The passes began at `passed_ns` and differentiate `makers`.
    """
    if not len(makers):
        return
    passes, first = np.unique(np.searchsorted(passed_ns, start_ns[makers], side="right"), return_index=True)
    firsts = makers[first]
    firsts[0] = rows[with_autograd[rows]].min(initial=firsts[0])
    begins, ends = start_ns[outermost[firsts]], passed_ns[np.minimum(passes, len(passed_ns) - 1)]
    for first_row, end_row in np.searchsorted(start_ns[rows], (begins, ends)).T:
        yield rows[first_row:end_row]
