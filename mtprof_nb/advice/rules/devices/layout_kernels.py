"""Kernels that only bring images into another order of dimensions."""

from __future__ import annotations

import re

import numpy as np

from mtprof_nb.advice.finding import CERTAIN, Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.causes.recorded_time import line_of_longest, recorded_ns
from mtprof_nb.model.intervals import covered_length
from mtprof_nb.model.trace import KERNEL, Trace

#: Kernels of cuDNN and MIOpen.
_CONVERTS = re.compile(r"nchwToNhwc|nhwcToNchw|nchw2nhwc|nhwc2nchw|batched_transpose_\d+x\d+", re.IGNORECASE)
_FIX = """\
model = model.to(memory_format=torch.channels_last)
x = x.to(memory_format=torch.channels_last)"""


@rule
def layout_conversions(trace: Trace) -> Finding | None:
    """Find kernels with which a library for convolutions converts between the orders NCHW and NHWC."""
    kernels = np.flatnonzero((trace.kind == KERNEL) & trace.where_name(lambda name: bool(_CONVERTS.search(name))))
    if not len(kernels):
        return None
    ns = covered_length(trace.start_ns[kernels], trace.end_ns[kernels])
    return Finding(
        "Convolutions convert the layout of their tensors",
        f"{units.plural(len(kernels), 'kernel')} that convert between NCHW and NHWC take {units.duration(ns)} of "
        f"{units.duration(recorded_ns(trace))}.",
        _FIX,
        line_of_longest(trace, kernels),
        at_most_ns=ns,
        certainty=CERTAIN,
    )
