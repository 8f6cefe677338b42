"""Kernels that only bring images into another order of dimensions."""

from __future__ import annotations

import re

from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.kernel_finding import finding_of_kernels, named_kernels
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.model.trace import Trace

#: Kernels of cuDNN and MIOpen.
_CONVERTS = re.compile(r"nchwToNhwc|nhwcToNchw|nchw2nhwc|nhwc2nchw|batched_transpose_\d+x\d+", re.IGNORECASE)
_FIX = """\
model = model.to(memory_format=torch.channels_last)
x = x.to(memory_format=torch.channels_last)"""


@rule
def layout_conversions(trace: Trace) -> Finding | None:
    """Find kernels with which a library for convolutions converts between the orders NCHW and NHWC."""
    return finding_of_kernels(
        trace,
        named_kernels(trace, _CONVERTS),
        title="Convolutions convert the layout of their tensors",
        what="that convert between NCHW and NHWC",
        fix=_FIX,
    )
