"""Which ops are of the forward pass: those that autograd recorded, or would have. The rest is *other*.

- An op is forward if autograd made a node for it, or for an op inside it; so is everything inside such an op.
- An op that runs inside the call of an `nn.Module` is forward, with autograd or without. Modules are known where stacks
  or modules are recorded: without them, evaluation under `no_grad` beside training is other, as is the clipping of
  gradients, which looks the same.
- A recording in which autograd recorded no op, and nothing is backward or of an optimizer, has no training to tell
  apart: all of its ops are forward.
"""

from __future__ import annotations

import numpy as np

from mtprof_nb.model.trace import FORWARD, OTHER, Bool, Int8, Int64


def settled(phase: Int8, undecided: Bool, is_in_module: Bool) -> Int8:
    """`phase`, where ops that autograd did not record are forward if they ran in a module, or nothing is training."""
    is_training = (phase[~undecided] != OTHER).any()
    found = phase.copy()
    found[undecided] = OTHER if is_training else FORWARD
    found[undecided & is_in_module] = FORWARD
    return found


def spread_over_outermost(starts: Int64, ends: Int64, chosen: Bool) -> Bool:
    """Of sorted intervals, those whose outermost one is chosen or contains a chosen one."""
    if not len(starts):
        return chosen
    is_outermost = starts >= np.concatenate(([np.iinfo(np.int64).min], np.maximum.accumulate(ends)[:-1]))
    first = np.flatnonzero(is_outermost)
    spread: Bool = np.logical_or.reduceat(chosen, first)[np.cumsum(is_outermost) - 1]
    return spread
