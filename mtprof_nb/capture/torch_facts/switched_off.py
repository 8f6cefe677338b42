"""Leaves out CPU ops that ran while the user had switched them off."""

from __future__ import annotations

import numpy as np

from mtprof_nb.model.trace import SCOPE, Trace


def without_switched_off(trace: Trace, switched: list[tuple[int, bool]]) -> Trace:
    """`trace` less the CPU ops that started while they were off; `switched` has each moment and what began then."""
    if not switched:
        return trace
    state = np.array([True] + [enabled for _, enabled in switched])
    enabled = state[np.searchsorted([moment for moment, _ in switched], trace.start_ns, side="right")]
    return trace.take(enabled | trace.on_device | (trace.kind == SCOPE))
