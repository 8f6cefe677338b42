"""The time of a recording that no single stall, first call or import explains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mtprof_nb.analysis.costs import counted_ops, op_costs
from mtprof_nb.analysis.operator_rows import rows
from mtprof_nb.analysis.summary import summary
from mtprof_nb.comparison.sides import Sides
from mtprof_nb.comparison.verdicts import FASTER, ONE_RUN_FLOOR, SLOWER, UNKNOWN, Verdict
from mtprof_nb.model.trace import Trace


def told_by_most_calls(sides: Sides, verdict: Verdict, a_ns: float, b_ns: float) -> Verdict:
    """The verdict on whole recordings without steps, one run each.

    A difference is told if one side takes far longer than all of the other even without the longest calls of its ops.
    """
    is_open = verdict.answer == UNKNOWN and sides.is_one_run_each and not sides.why_incomparable
    if not is_open or min(a_ns, b_ns) <= 0 or any(steps > 1 for steps in sides.a.steps + sides.b.steps):
        return verdict
    is_faster = b_ns < a_ns
    slow, fast = sides.both if is_faster else sides.both[::-1]
    if steady_ns(slow.runs[0]) < ONE_RUN_FLOOR * min(a_ns, b_ns):
        return verdict
    why = (
        f"one run each, but even without the longest tenth of the calls of each op, {slow.label} takes more than "
        f"{ONE_RUN_FLOOR:g} times as long as all of {fast.label}"
    )
    return replace(verdict, answer=FASTER if is_faster else SLOWER, why=why)


def steady_ns(run: Trace) -> int:
    """The self time of ops without the longest tenth of the calls of each, at least one; 0 where ops ran at once."""
    if summary(run).outside_ns is None:
        return 0
    chosen = np.flatnonzero(counted_ops(run))
    op, times = rows(run, "op").of_event[chosen], op_costs(run).self_ns[chosen]
    order = np.lexsort((times, op))
    calls = np.bincount(op)
    place = np.arange(len(order)) - (np.cumsum(calls) - calls)[op[order]]
    is_kept = place < (calls * 9 // 10)[op[order]]
    return int(times[order][is_kept].sum())
