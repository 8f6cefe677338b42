"""Threads that ran ops while their memory was not recorded."""

from __future__ import annotations

import numpy as np

from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.trace import OP, Bool, Trace


@once_a_trace
def lacks_memory(trace: Trace) -> Bool:
    """Which events ran on a thread whose CPU memory was not recorded, though it was asked for.

    PyTorch reports CPU memory only on the thread that profiles.
    """
    if trace.memory_before is None or "CPU" not in trace.devices:
        return np.zeros(len(trace), np.bool_)
    on_cpu = (trace.kind == OP) & (trace.device == trace.devices.index("CPU"))
    without = np.unique(trace.track[on_cpu & (trace.memory_before < 0)])
    known = np.unique(trace.track[on_cpu & (trace.memory_before >= 0)])
    return np.isin(trace.track, np.setdiff1d(without, known))


def has_memory(trace: Trace) -> bool:
    """Whether `trace` has memory: records, or none because nothing was allocated."""
    if trace.allocations is None:
        return trace.memory_after is not None
    return len(trace.allocations) > 0 or not lacks_memory(trace).any()
