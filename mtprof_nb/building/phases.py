"""The phase of each event: forward, backward, optimizer or other.

- An op is forward if autograd made a node for it, or for an op inside it; so is everything inside such an op.
- An op that runs inside the call of an `nn.Module` is forward, with autograd or without. Modules are known where stacks
  or modules are recorded: without them, evaluation under `no_grad` next to training is other, as is the clipping of
  gradients, which looks the same.
- A recording in which autograd recorded no op, and nothing is backward or of an optimizer, is not
  of training: all of its ops are forward.
"""

from __future__ import annotations

import numpy as np

from mtprof_nb.building.recorded_events import RecordedEvents
from mtprof_nb.model.trace import BACKWARD, FORWARD, OPTIMIZER, OTHER, RUNTIME, Bool, Int8

#: How the name of the scope begins in which torch's data loader makes a batch.
OF_LOADER = "enumerate(DataLoader)"


def phases(events: RecordedEvents, recorded: Bool, is_backward: Bool, in_step: Bool, in_module: Bool) -> Int8:
    """The phase of each event.

    `recorded` has the events that autograd recorded, `in_step` those of an optimizer's step,
    `in_module` those that ran inside the call of a module.
    """
    in_loader = events.intervals.inside(events.scopes_of(OF_LOADER))
    conditions = [is_backward, in_step, recorded & ~in_loader]
    phase = np.select(conditions, [BACKWARD, OPTIMIZER, FORWARD], OTHER).astype(np.int8)
    is_decided = in_loader | (phase != OTHER)
    return settled(phase, (events.is_op | (events.kind == RUNTIME)) & ~is_decided, in_module)


def settled(phase: Int8, undecided: Bool, is_in_module: Bool) -> Int8:
    """Decide `undecided` ops: forward if they ran in a module or nothing is training, else other."""
    is_training = (phase[~undecided] != OTHER).any()
    decided = phase.copy()
    decided[undecided] = OTHER if is_training else FORWARD
    decided[undecided & is_in_module] = FORWARD
    return decided
