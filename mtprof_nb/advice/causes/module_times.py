"""The time of modules, those of repeated layers taken together."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from mtprof_nb.analysis.costs import counted_ops, op_costs
from mtprof_nb.analysis.groups import sums
from mtprof_nb.model.trace import Trace

_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")


def module_times(trace: Trace) -> Counter[str]:
    """The time in ops of each module itself, forward and backward; `x.0.y`, `x.1.y` and so on are `x.*.y`."""
    found: Counter[str] = Counter()
    if trace.module is not None:
        rows = np.flatnonzero(counted_ops(trace) & (trace.module >= 0))
        times = sums(trace.module[rows], op_costs(trace).self_ns[rows], len(trace.modules))
        for path, ns in zip(trace.modules, times.tolist(), strict=True):
            found[_NUMBER.sub("*", path)] += ns
    return found
