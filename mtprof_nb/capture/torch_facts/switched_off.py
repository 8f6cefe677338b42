"""Leaves out what ran while the user had switched it off."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mtprof_nb.model.trace import RUNTIME, SCOPE, Bool, Int64, Trace

#: Moments, and whether something was on from then.
Switched = Sequence[tuple[int, bool]]


def without_switched_off(trace: Trace, ops: Switched, devices: Switched = ()) -> Trace:
    """`trace` less the CPU ops that started while they were off, and the events launched while devices were."""
    if not (ops or devices):
        return trace
    is_call = trace.kind == RUNTIME
    is_kept = _is_on(ops, trace.start_ns) | trace.on_device | (trace.kind == SCOPE) | is_call
    if devices:
        launch = np.full(len(trace), -1) if trace.launch is None else trace.launch
        launched_ns = np.where(launch >= 0, trace.start_ns[launch], trace.start_ns)
        is_kept &= _is_on(devices, launched_ns) | ~(trace.on_device | is_call)
    return trace.take(is_kept)


def _is_on(switched: Switched, moments_ns: Int64) -> Bool:
    state = np.array([True] + [enabled for _, enabled in switched])
    found: Bool = state[np.searchsorted([moment for moment, _ in switched], moments_ns, side="right")]
    return found
