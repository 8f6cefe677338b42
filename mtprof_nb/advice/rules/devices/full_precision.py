"""Matrix products in full float32 on a device that has faster ones."""

from __future__ import annotations

import re

import numpy as np

from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.causes.recorded_time import line_of_longest, recorded_ns
from mtprof_nb.model.intervals import covered_length
from mtprof_nb.model.trace import KERNEL, Trace

#: Kernels for float32 that do not use the tensor cores, by names that only devices with TF32 have.
_FULL = re.compile(
    r"ampere_sgemm|ampere_scudnn|cutlass_80_simt_sgemm|sm80_xmma_(gemm|fprop|dgrad|wgrad)\w*_f32f32_f32f32"
)
_FIX = 'torch.set_float32_matmul_precision("high")  # TF32: 10 bits of precision instead of 23'


@rule
def full_precision_products(trace: Trace) -> Finding | None:
    """Find kernels of matrix products in float32 without TF32, on a device whose kernels' names say that it has it."""
    kernels = np.flatnonzero((trace.kind == KERNEL) & trace.where_name(lambda name: bool(_FULL.search(name))))
    if not len(kernels):
        return None
    ns = covered_length(trace.start_ns[kernels], trace.end_ns[kernels])
    return Finding(
        "Matrix products use full float32",
        f"{units.plural(len(kernels), 'kernel')} without tensor cores take {units.duration(ns)} of "
        f"{units.duration(recorded_ns(trace))}.",
        _FIX,
        line_of_longest(trace, kernels),
        at_most_ns=ns,
    )
