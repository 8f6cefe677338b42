"""Closures: `optimizer.step(closure)` runs forward and backward passes inside the step.

1. An op that a backward pass inside the same step differentiates is forward.
2. So is every op between such an op and that backward pass.
3. So is every op before the first such op that ran with autograd on: an optimizer works with autograd off.

All other ops of the step stay the optimizer's: in LBFGS, for example, the update after the closure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mtprof_nb.capture.shared.thread_intervals import ThreadIntervals
from mtprof_nb.model.trace import BACKWARD, FORWARD, OP, OPTIMIZER, OTHER, SCOPE, Int64, Trace

OF_OPTIMIZER = "Optimizer."
_STEP = "Optimizer.step"


def with_closures(trace: Trace) -> Trace:
    """`trace`, in any order of rows, with ops of closures as forward instead of optimizer."""
    backward = np.flatnonzero((trace.phase == BACKWARD) & (trace.forward >= 0))
    backward = backward[trace.phase[trace.forward[backward]] == OPTIMIZER]
    if not len(backward):
        return trace
    start_ns, end_ns = trace.start_ns, trace.end_ns
    intervals = ThreadIntervals(start_ns, end_ns, trace.track)
    of_optimizer = trace.where_name(lambda name: name.startswith(OF_OPTIMIZER))
    scope = intervals.innermost((trace.kind == SCOPE) & of_optimizer)
    outermost = intervals.outermost((trace.kind == OP) & (trace.phase == OPTIMIZER))
    rows = np.flatnonzero(trace.phase == OPTIMIZER)
    rows = rows[np.lexsort((-trace.duration_ns[rows], start_ns[rows], scope[rows]))]
    backward = backward[np.lexsort((start_ns[trace.forward[backward]], scope[trace.forward[backward]]))]
    makers = trace.forward[backward]
    phase = trace.phase.copy()
    for step in np.unique(scope[makers]).tolist():
        if step < 0 or not trace.names[trace.name[step]].startswith(_STEP):
            continue
        inside, known = (slice(*np.searchsorted(scope[some], (step, step + 1))) for some in (rows, makers))
        is_inside = start_ns[backward[known]] < end_ns[step]
        made_by, passed_ns = makers[known][is_inside], np.sort(start_ns[backward[known]][is_inside])
        for chosen in _of_closures(trace, rows[inside], made_by, passed_ns, outermost) if len(made_by) else ():
            phase[chosen] = np.where(trace.kind[chosen] == OP, FORWARD, OTHER)
    return replace(trace, phase=phase)


def _of_closures(trace: Trace, rows: Int64, makers: Int64, passed_ns: Int64, outermost: Int64) -> Iterator[Int64]:
    """Of one step's sorted `rows` those before each backward pass, which differentiates `makers` at `passed_ns`."""
    start_ns = trace.start_ns[rows]
    passes, first = np.unique(np.searchsorted(passed_ns, trace.start_ns[makers], side="right"), return_index=True)
    firsts = makers[first]
    with_autograd = rows[(trace.kind[rows] == OP) & (trace.sequence_nr[rows] >= 0)]
    if len(with_autograd) and trace.start_ns[with_autograd[0]] < trace.start_ns[firsts[0]]:
        firsts[0] = with_autograd[0]
    begins, ends = trace.start_ns[outermost[firsts]], passed_ns[np.minimum(passes, len(passed_ns) - 1)]
    for first_row, end_row in zip(np.searchsorted(start_ns, begins), np.searchsorted(start_ns, ends), strict=True):
        yield rows[first_row:end_row]
