"""Peaks of memory that mostly hold tensors for the backward pass."""

from __future__ import annotations

import numpy as np

from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.memory.memory_categories import Category, categories
from mtprof_nb.analysis.memory.memory_curve import held_at_peak, line_of_most
from mtprof_nb.model.trace import Trace

#: A smaller peak is no trouble on any machine.
_LEAST_PEAK, _LEAST_SHARE = 256 << 20, 0.5
_FIX = """\
from torch.utils.checkpoint import checkpoint
x = checkpoint(block, x, use_reentrant=False)  # computes the block again in the backward pass
# or smaller batches, with gradients of several added up"""


@rule
def activations_at_peak(trace: Trace) -> Finding | None:
    """Find a peak of 256 MiB or more, half of which are tensors that the forward pass keeps for the backward pass."""
    records, at_peak = trace.allocations, held_at_peak(trace)
    if records is None or at_peak is None or at_peak.nbytes < _LEAST_PEAK:
        return None
    rows = at_peak.rows[categories(trace)[at_peak.rows] == Category.ACTIVATION]
    kept = int(records.nbytes[rows].sum())
    if kept < _LEAST_SHARE * at_peak.nbytes:
        return None
    line, held = line_of_most(trace, records, rows)
    return Finding(
        "The peak of memory is what the forward pass keeps for the backward pass",
        f"{units.nbytes(kept)} of {units.nbytes(at_peak.nbytes)} at the peak are activations, in "
        f"{units.plural(len(np.unique(rows)), 'tensor')}" + (f"; {units.nbytes(held)} of one line." if line else "."),
        _FIX,
        line,
        at_most_bytes=kept,
    )
