"""Tensors that grow by `cat`, so that each step copies all that is there."""

from __future__ import annotations

from collections import defaultdict
from math import prod
from typing import Any

import numpy as np

from mtprof_nb.advice.finding import CERTAIN, Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.causes.recorded_time import line_of_longest, recorded_ns
from mtprof_nb.analysis.causes.spent_time import spent_ns, with_backward
from mtprof_nb.analysis.costs import counted_ops
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.model.trace import FORWARD, OTHER, Trace

_LEAST_CALLS = 16
_FIX = """\
parts.append(row)  # in the loop, instead of whole = torch.cat([whole, row])
whole = torch.cat(parts)  # once, after the loop
# if each pass needs the whole: make it once, as large as it gets, and write into it: whole[count] = row"""


@rule
def grows_by_cat(trace: Trace) -> Finding | None:
    """Find calls of `cat` on one line, each of which begins with the result of an earlier one; needs shapes."""
    growing = _growing(trace)
    if len(growing) < _LEAST_CALLS:
        return None
    chosen = np.zeros(len(trace), np.bool_)
    chosen[growing] = True
    ns = spent_ns(trace, with_backward(trace, chosen))
    return Finding(
        "A tensor grows by cat, which copies the whole of it each time",
        f"{units.plural(len(growing), 'call')} of cat, each with the result of an earlier one, take "
        f"{units.duration(ns)} of {units.duration(recorded_ns(trace))}, backward passes included.",
        _FIX,
        line_of_longest(trace, np.array(growing, np.int64)),
        at_most_ns=ns,
        certainty=CERTAIN,
    )


def _growing(trace: Trace) -> list[int]:
    """The calls of `cat` whose first tensor is as large as the result of an earlier call on the same line.

    A line may let several tensors grow in turns, as the keys and the values of a cache.
    """
    if trace.shape is None:
        return []
    cats = counted_ops(trace) & trace.where_name("aten::cat".__eq__) & np.isin(trace.phase, (FORWARD, OTHER))
    results: dict[int, set[int]] = defaultdict(set)
    growing = []
    for event in np.flatnonzero(cats & (trace.shape >= 0)).tolist():
        line = int(attribution(trace).line[event])
        sizes = _sizes(trace.shapes[trace.shape[event]])
        if len(sizes) > 1 and sizes[0] in results[line] and sizes[0] > sum(sizes[1:]):
            growing.append(event)
        results[line].add(sum(sizes))
    return growing


def _sizes(shapes: Any) -> list[int]:
    """The elements of each tensor in the list that is the first input."""
    parts = shapes[0] if shapes else ()
    return [prod(part) for part in parts] if all(isinstance(part, tuple) for part in parts) else []
