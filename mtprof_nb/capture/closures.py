"""Closures: a step of an optimizer that is given one runs forward and backward inside itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mtprof_nb.intervals import covered
from mtprof_nb.trace import BACKWARD, FORWARD, OP, OPTIMIZER, OTHER, SCOPE, Bool, Int64, Trace

OF_OPTIMIZER = "Optimizer."
_STEP = "Optimizer.step"


def with_closures(trace: Trace) -> Trace:
    """`trace`, in any order of rows, where ops that a closure ran on the way to a backward pass are no optimizer's.

    Known to be such are ops that the backward pass went back through. What runs between them and that pass is too, and
    so is what ran before with autograd on: an optimizer's own work is done without.
    """
    backward = np.flatnonzero((trace.phase == BACKWARD) & (trace.forward >= 0))
    backward = backward[trace.phase[trace.forward[backward]] == OPTIMIZER]
    if not len(backward):
        return trace
    phase = trace.phase.copy()
    made_by = trace.forward[backward]
    for thread in np.unique(trace.thread[made_by]).tolist():
        rows = np.flatnonzero(trace.thread == thread)
        rows = rows[np.lexsort((-trace.duration_ns[rows], trace.start_ns[rows]))]
        is_here = trace.thread[made_by] == thread
        for chosen in _of_closures(trace, rows, made_by[is_here], backward[is_here]):
            phase[chosen] = np.where(trace.kind[chosen] == OP, FORWARD, OTHER)
    return replace(trace, phase=phase)


def _of_closures(trace: Trace, rows: Int64, makers: Int64, backward: Int64) -> Iterator[Int64]:
    """Of one thread's sorted `rows`, those that closures ran; `backward` went back through `makers`, one by one."""
    start_ns, end_ns = trace.start_ns, trace.end_ns
    is_step, is_other = (
        np.array([name.startswith(OF_OPTIMIZER) and name.startswith(_STEP) == asked for name in trace.names], np.bool_)
        for asked in (True, False)
    )
    scopes = rows[trace.kind[rows] == SCOPE]
    steps, others = scopes[is_step[trace.name[scopes]]], scopes[is_other[trace.name[scopes]]]
    rows = rows[(trace.phase[rows] == OPTIMIZER) & ~covered(start_ns[others], end_ns[others], start_ns[rows])]
    order = np.argsort(start_ns[makers], kind="stable")
    made_ns, passed_ns = start_ns[makers[order]], start_ns[backward[order]]
    for step in steps.tolist():
        edges = start_ns[step], end_ns[step]
        known, inside = slice(*np.searchsorted(made_ns, edges)), slice(*np.searchsorted(start_ns[rows], edges))
        if known.start < known.stop:
            yield from _stretches(trace, rows[inside], made_ns[known], np.sort(passed_ns[known]))


def _stretches(trace: Trace, rows: Int64, made_ns: Int64, passed_ns: Int64) -> Iterator[Int64]:
    """Of one step's sorted `rows`, those before each backward pass, given the starts of its ops and of their makers."""
    start_ns, end_ns = trace.start_ns[rows], trace.end_ns[rows]
    is_op = trace.kind[rows] == OP
    outermost = np.flatnonzero(is_op)[_is_outermost(start_ns[is_op], end_ns[is_op])]
    numbered_ns = start_ns[is_op & (trace.sequence_nr[rows] >= 0)]
    with_autograd = outermost[np.unique(np.searchsorted(start_ns[outermost], numbered_ns, side="right") - 1)]
    passes_before = np.searchsorted(passed_ns, made_ns, side="right")
    for passes in np.unique(passes_before).tolist():
        after_ns = passed_ns[passes - 1] if passes else 0
        last_ns = made_ns[passes_before == passes][-1]
        begun = with_autograd[(start_ns[with_autograd] >= after_ns) & (start_ns[with_autograd] <= last_ns)]
        if len(begun):
            holder = outermost[np.searchsorted(start_ns[outermost], last_ns, side="right") - 1]
            until_ns = passed_ns[passes] if passes < len(passed_ns) else end_ns[holder]
            yield rows[(start_ns >= start_ns[begun[0]]) & (start_ns < until_ns)]


def _is_outermost(starts: Int64, ends: Int64) -> Bool:
    """Which of sorted intervals lie in no other."""
    found: Bool = starts >= np.concatenate(([0], np.maximum.accumulate(ends)[:-1]))
    return found
