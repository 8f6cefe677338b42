"""Matrix products in full float32 on a device that has faster ones."""

from __future__ import annotations

import re

from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.kernel_finding import finding_of_kernels, named_kernels
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.model.trace import Trace

#: Products of float32 that do not use the tensor cores, by names that only devices with TF32 have.
_FULL = re.compile(r"ampere_sgemm|cutlass_80_simt_sgemm|sm80_xmma_gemm\w*_f32f32_f32f32")
#: Products of float32 that do.
_TF32 = re.compile(r"tensorop_s1688(tf32)?gemm|xmma_gemm\w*_tf32f32")
_FIX = 'torch.set_float32_matmul_precision("high")  # TF32: 10 bits of precision instead of 23'


@rule
def full_precision_products(trace: Trace) -> Finding | None:
    """Find kernels of matrix products in float32 without TF32, on a device whose kernels' names say that it has it.

    Silent if other products use TF32: it is allowed then, and the library did not choose it for these. Convolutions do
    not count: for them, PyTorch allows TF32 by default.
    """
    if len(named_kernels(trace, _TF32)):
        return None
    return finding_of_kernels(
        trace,
        named_kernels(trace, _FULL),
        title="Matrix products use full float32",
        what="without tensor cores",
        fix=_FIX,
    )
