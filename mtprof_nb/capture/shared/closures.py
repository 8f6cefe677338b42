"""Closures: a step of an optimizer that is given one runs forward and backward inside itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mtprof_nb.model.intervals import innermost, nest_intervals
from mtprof_nb.model.trace import BACKWARD, FORWARD, OP, OPTIMIZER, OTHER, SCOPE, Bool, Int64, Trace

OF_OPTIMIZER = "Optimizer."
_STEP = "Optimizer.step"


def with_closures(trace: Trace) -> Trace:
    """`trace`, in any order of rows, where ops that a closure ran on the way to a backward pass are no optimizer's.

    Known to be such are ops that a backward pass inside the same step went back through. What runs between them and
    that pass is too; before the first, what ran with autograd on, for an optimizer's own work is done without.
    """
    backward = np.flatnonzero((trace.phase == BACKWARD) & (trace.forward >= 0))
    backward = backward[trace.phase[trace.forward[backward]] == OPTIMIZER]
    if not len(backward):
        return trace
    phase = trace.phase.copy()
    made_by = trace.forward[backward]
    for thread in np.unique(trace.track[made_by]).tolist():
        is_here = trace.track[made_by] == thread
        for chosen in _of_closures(trace, thread, made_by[is_here], backward[is_here]):
            phase[chosen] = np.where(trace.kind[chosen] == OP, FORWARD, OTHER)
    return replace(trace, phase=phase)


def _of_closures(trace: Trace, thread: int, makers: Int64, backward: Int64) -> Iterator[Int64]:
    """Of one thread's rows, those that closures ran; `backward` went back through `makers`, one by one."""
    start_ns, end_ns = trace.start_ns, trace.end_ns
    rows = np.flatnonzero(trace.track == thread)
    rows = rows[np.lexsort((-trace.duration_ns[rows], start_ns[rows]))]
    of_optimizer = np.array([name.startswith(OF_OPTIMIZER) for name in trace.names], np.bool_)
    scopes = rows[(trace.kind[rows] == SCOPE) & of_optimizer[trace.name[rows]]]
    parents, _ = nest_intervals(start_ns[scopes], end_ns[scopes])

    def scope_of(some: Int64) -> Int64:
        return innermost(start_ns[scopes], end_ns[scopes], parents, start_ns[some])

    order = np.argsort(start_ns[makers], kind="stable")
    makers, backward = makers[order], backward[order]
    rows = rows[trace.phase[rows] == OPTIMIZER]
    of_row, of_maker = scope_of(rows), scope_of(makers)
    rows, makers = rows[np.argsort(of_row, kind="stable")], makers[np.argsort(of_maker, kind="stable")]
    backward = backward[np.argsort(of_maker, kind="stable")]
    of_row, of_maker = np.sort(of_row), np.sort(of_maker)
    for scope in np.unique(of_maker[of_maker >= 0]).tolist():
        if not trace.names[trace.name[scopes[scope]]].startswith(_STEP):
            continue
        inside, known = (slice(*np.searchsorted(of, (scope, scope + 1))) for of in (of_row, of_maker))
        passed_ns = start_ns[backward[known]]
        is_inside = passed_ns < end_ns[scopes[scope]]
        if is_inside.any():
            made_ns = start_ns[makers[known]][is_inside]
            yield from _stretches(trace, rows[inside], made_ns, np.sort(passed_ns[is_inside]))


def _stretches(trace: Trace, rows: Int64, made_ns: Int64, passed_ns: Int64) -> Iterator[Int64]:
    """Of one step's sorted `rows`, those before each backward pass, given the starts of its ops and of their makers."""
    start_ns = trace.start_ns[rows]
    end_ns = start_ns + trace.duration_ns[rows]
    is_op = trace.kind[rows] == OP
    outermost = start_ns[is_op][_is_outermost(start_ns[is_op], end_ns[is_op])]

    def begin_of_outermost(moments: Int64) -> Int64:
        found: Int64 = outermost[np.searchsorted(outermost, moments, side="right") - 1]
        return found

    passes_before = np.searchsorted(passed_ns, made_ns, side="right")
    passes, first = np.unique(passes_before, return_index=True)
    with_autograd = start_ns[is_op & (trace.sequence_nr[rows] >= 0)]
    first_ns = made_ns[first]
    first_ns[0] = min([first_ns[0], *with_autograd[:1]])
    begins, ends = begin_of_outermost(first_ns), passed_ns[np.minimum(passes, len(passed_ns) - 1)]
    for first_row, end_row in zip(np.searchsorted(start_ns, begins), np.searchsorted(start_ns, ends), strict=True):
        yield rows[first_row:end_row]


def _is_outermost(starts: Int64, ends: Int64) -> Bool:
    """Which of sorted intervals lie in no other."""
    found: Bool = starts >= np.concatenate(([0], np.maximum.accumulate(ends)[:-1]))
    return found
