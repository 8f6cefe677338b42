"""Estimates the time that the native recorder added to a program.

The cost of one op is measured on this machine. All other costs are multiples of it, measured on programs of small ops,
on a `DataLoader` over tensors and on training steps (`python -m benchmarks native`).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from mtprof_nb.capture.native.recorder_loading import recorder
from mtprof_nb.model.trace import RUNTIME, Bool, Int32, Int64, Trace

#: Used where another observer of ops is active, so that the cost cannot be measured.
_USUAL_NS = 200.0
#: An event with none around it, and one inside another event.
_OUTERMOST, _INSIDE = 0.8, 0.55
#: A node of the backward pass: torch makes texts for it, which it does only where it is observed.
_NODE = 7.0
#: Shapes of an event, and of each list among its inputs, which torch copies.
_SHAPES, _LIST = 0.57, 0.64
_BLOCK = 0.12
_STACK = 0.2
_NODE_NAME = "autograd::engine::evaluate_function"
_LISTS = ("TensorList", "ScalarList")


def cost_ns(trace: Trace) -> int:
    """An estimate of the time that it took to record `trace`, which this process has recorded."""
    ours: Int64 | slice = slice(None)
    if trace.launcher is not None:  # devices record themselves
        ours = np.flatnonzero(~(trace.on_device | (trace.kind == RUNTIME)))
    start_ns, duration_ns, track = trace.start_ns[ours], trace.duration_ns[ours], trace.track[ours]
    count = len(start_ns)
    inside = int(np.count_nonzero(_is_inside(start_ns, duration_ns, track)))
    cost = _INSIDE * inside + _OUTERMOST * (count - inside)
    cost += _NODE * _count(trace.name, [name.startswith(_NODE_NAME) for name in trace.names])
    if trace.recorded.record_shapes or trace.recorded.with_flops:
        cost += _SHAPES * count
    if trace.shape is not None:
        cost += _LIST * _count(trace.shape, [sum(kind in _LISTS for kind in kinds) for kinds in trace.dtypes])
    if trace.recorded.with_stack or trace.recorded.with_modules:
        cost += _STACK * count
    if trace.allocations is not None:
        cost += _BLOCK * len(trace.allocations)
    return round(cost * _op_ns())


def _count(position: np.ndarray, amounts: list[int]) -> int:
    """The sum of the amounts at which `position` points; -1 points at nothing."""
    return int(np.array([*amounts, 0], np.int64)[position].sum())


def _is_inside(start_ns: Int64, duration_ns: Int64, track: Int32) -> Bool:
    """Whether each event, in order of threads, begins while another one of its thread runs."""
    if not len(start_ns):
        return np.zeros(0, np.bool_)
    began = start_ns - start_ns.min()
    span = int((began + duration_ns).max()) + 1
    began = began + track.astype(np.int64) * span
    order = np.argsort(track, kind="stable") if track.any() else slice(None)
    ends = np.maximum.accumulate((began + duration_ns)[order])
    return np.append(False, began[order][1:] < ends[:-1])


@lru_cache(maxsize=1)
def _measured_ns() -> float | None:
    module = recorder()
    measured: float | None = module.op_cost() if module is not None else None
    return measured


def _op_ns() -> float:
    """Nanoseconds that recording adds to an op that calls another one, measured once."""
    measured = _measured_ns()
    if measured is None:
        _measured_ns.cache_clear()
        return _USUAL_NS
    return measured
