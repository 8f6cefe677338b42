"""Sums of a metric at each node of the stack tree, self and with callees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtprof_nb.analysis.costs import event_costs
from mtprof_nb.model.trace import Int32, Int64, StackTree, Trace

#: The device whose time a metric of collapsed stacks sums.
_DEVICE_OF_METRIC = {
    "self_cpu_time_total": "CPU",
    "self_cuda_time_total": "CUDA",
    "self_xpu_time_total": "XPU",
    "self_privateuse1_time_total": "NPU",
}
METRICS = tuple(_DEVICE_OF_METRIC)


@dataclass(frozen=True, eq=False)
class StackTotals:
    """The metric at each node of a tree, without its callees."""

    tree: StackTree
    self_value: Int64


def stack_totals(trace: Trace, metric: str = METRICS[0]) -> StackTotals:
    """Nanoseconds of `metric` by stack. `ValueError` for an unknown metric, or where no stacks were recorded."""
    if metric not in _DEVICE_OF_METRIC:
        msg = f"metric should be one of: {list(METRICS)}"
        raise ValueError(msg)
    if trace.stacks is None or trace.stack is None:
        msg = "no stacks were recorded: profile with with_stack=True"
        raise ValueError(msg)
    self_ns = _self_ns(trace, _DEVICE_OF_METRIC[metric])
    rows = np.flatnonzero((trace.stack >= 0) & (self_ns != 0))
    total = np.zeros(len(trace.stacks), np.int64)
    np.add.at(total, trace.stack[rows], self_ns[rows])
    return StackTotals(trace.stacks, total)


def with_called(parent: Int32, own: Int64) -> Int64:
    """The value of each node plus those of all nodes below it."""
    total = np.array(own, np.int64)
    depth = depths(parent)
    by_depth = np.argsort(depth, kind="stable")
    levels = np.split(by_depth, np.flatnonzero(np.diff(depth[by_depth])) + 1)
    for level in reversed(levels[1:]):
        np.add.at(total, parent[level], total[level])
    return total


def depths(parent: Int32) -> Int64:
    """The number of callers of each node of a tree with these parents, -1 for the root's."""
    depth = (parent >= 0).astype(np.int64)
    ancestor = parent
    while (further := ancestor >= 0).any():
        # Each round doubles how far up is known.
        depth = depth + np.where(further, depth[ancestor], 0)
        ancestor = np.where(further, ancestor[ancestor], -1)
    return depth


def _self_ns(trace: Trace, device: str) -> Int64:
    """Self time of the host, or time of the kernels of a device at the op that launched them."""
    costs = event_costs(trace)
    if device == "CPU":
        return np.where(trace.on_device, 0, costs.self_ns)
    own = np.zeros(len(trace), np.int64)
    if trace.launcher is not None and device in trace.devices:
        of_device = trace.on_device & (trace.device == trace.devices.index(device))
        kernels = np.flatnonzero(of_device & (trace.launcher >= 0))
        np.add.at(own, trace.launcher[kernels], trace.duration_ns[kernels])
    return own
