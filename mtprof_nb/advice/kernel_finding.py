"""Kernels that are known by their names, and findings about them."""

from __future__ import annotations

import re

import numpy as np

from mtprof_nb.advice.finding import Finding
from mtprof_nb.analysis import units
from mtprof_nb.analysis.program_time.recorded_time import line_of_longest, recorded_ns
from mtprof_nb.model.intervals import covered_length
from mtprof_nb.model.trace import KERNEL, Int64, Trace


def named_kernels(trace: Trace, pattern: re.Pattern[str]) -> Int64:
    """Positions of the kernels whose names contain `pattern`."""
    return np.flatnonzero((trace.kind == KERNEL) & trace.where_name(lambda name: bool(pattern.search(name))))


def finding_of_kernels(trace: Trace, kernels: Int64, *, title: str, what: str, fix: str) -> Finding | None:
    """The finding that a fix can save these kernels, which are `what`; None without kernels."""
    if not len(kernels):
        return None
    ns = covered_length(trace.start_ns[kernels], trace.end_ns[kernels])
    return Finding(
        title,
        f"{units.plural(len(kernels), 'kernel')} {what} take {units.duration(ns)} of "
        f"{units.duration(recorded_ns(trace))}.",
        fix,
        line_of_longest(trace, kernels),
        at_most_ns=ns,
    )
