"""Kernels that are known by their names: matrix products in full float32, and conversions of layout."""

from __future__ import annotations

import re

import numpy as np

from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.program_time.recorded_time import line_of_longest, of_recorded
from mtprof_nb.model.intervals import covered_length
from mtprof_nb.model.trace import KERNEL, Int64, Trace

#: Products of float32 that do not use the tensor cores, by names that only devices with TF32 have.
_FULL = re.compile(r"ampere_sgemm|cutlass_80_simt_sgemm|sm80_xmma_gemm\w*_f32f32_f32f32")
#: Products of float32 that do.
_TF32 = re.compile(r"tensorop_s1688(tf32)?gemm|xmma_gemm\w*_tf32f32")
_FIX_FULL = 'torch.set_float32_matmul_precision("high")  # TF32: 10 bits of precision instead of 23'
#: Kernels of cuDNN and MIOpen.
_CONVERTS = re.compile(r"nchwToNhwc|nhwcToNchw|nchw2nhwc|nhwc2nchw|batched_transpose_\d+x\d+", re.IGNORECASE)
_FIX_LAYOUT = """\
model = model.to(memory_format=torch.channels_last)
x = x.to(memory_format=torch.channels_last)"""


@rule
def layout_conversions(trace: Trace) -> Finding | None:
    """Find kernels with which a library for convolutions converts between the orders NCHW and NHWC."""
    title = "Convolutions convert the layout of their tensors"
    return _finding(trace, _named(trace, _CONVERTS), title, "that convert between NCHW and NHWC", _FIX_LAYOUT)


@rule
def full_precision_products(trace: Trace) -> Finding | None:
    """Find kernels of matrix products in float32 without TF32, on a device whose kernels' names show that it has it.

    Silent if other products use TF32: it is allowed then, and the library did not choose it for these. Convolutions do
    not count: for them, PyTorch allows TF32 by default.
    """
    if len(_named(trace, _TF32)):
        return None
    title = "Matrix products use full float32"
    return _finding(trace, _named(trace, _FULL), title, "without tensor cores", _FIX_FULL)


def _named(trace: Trace, pattern: re.Pattern[str]) -> Int64:
    """Positions of the kernels whose names contain `pattern`."""
    return np.flatnonzero((trace.kind == KERNEL) & trace.where_name(lambda name: bool(pattern.search(name))))


def _finding(trace: Trace, kernels: Int64, title: str, what: str, fix: str) -> Finding | None:
    """The finding that a fix can save these kernels, which are `what`; None without kernels."""
    if not len(kernels):
        return None
    ns = covered_length(trace.start_ns[kernels], trace.end_ns[kernels])
    return Finding(
        title,
        f"{units.plural(len(kernels), 'kernel')} {what} take {of_recorded(trace, ns)}.",
        fix,
        line_of_longest(trace, kernels),
        at_most_ns=ns,
    )
