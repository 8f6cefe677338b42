"""Sums of a metric at each node of the stack tree, self and with callees."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mtprof_nb.analysis.costs import event_costs
from mtprof_nb.analysis.devices.kernel_owners import kernel_owners
from mtprof_nb.analysis.functions.thread_time import stack_time
from mtprof_nb.analysis.groups import sums
from mtprof_nb.model.trace import Int32, Int64, StackTree, Trace

#: The device whose time a metric of collapsed stacks sums.
_DEVICE_OF_METRIC = {
    "self_cpu_time_total": "CPU",
    "self_cuda_time_total": "CUDA",
    "self_xpu_time_total": "XPU",
    "self_privateuse1_time_total": "NPU",
}
#: Metrics of torch.
METRICS = tuple(_DEVICE_OF_METRIC)
#: The time of a stack in ops, in Python code and in waiting: ours, from samples.
PYTHON_METRIC = "self_python_time_total"


def check_metric(metric: str, known: Sequence[str] = METRICS) -> None:
    """`ValueError` for an unknown metric."""
    if metric not in known:
        msg = f"metric should be one of: {list(known)}"
        raise ValueError(msg)


def stack_totals(trace: Trace, metric: str = METRICS[0]) -> tuple[StackTree, Int64]:
    """The trace's stacks, and at each node the nanoseconds of `metric`, without its callees.

    `ValueError` for an unknown metric, or where no stacks, or for `PYTHON_METRIC` no samples, were recorded.
    """
    check_metric(metric, (*METRICS, PYTHON_METRIC))
    if metric == PYTHON_METRIC:
        return _with_python(trace)
    if trace.stacks is None or trace.stack is None:
        msg = "no stacks were recorded: use profile(with_stack=True)"
        raise ValueError(msg)
    self_ns = _self_ns(trace, _DEVICE_OF_METRIC[metric])
    rows = np.flatnonzero((trace.stack >= 0) & (self_ns != 0))
    return trace.stacks, sums(trace.stack[rows], self_ns[rows], len(trace.stacks))


def _with_python(trace: Trace) -> tuple[StackTree, Int64]:
    time = stack_time(trace)
    if time is None or trace.stacks is None:
        msg = "Python's time was not recorded: use profile(with_python=True)"
        raise ValueError(msg)
    known = time.stack >= 0
    return trace.stacks, sums(time.stack[known], time.total_ns[known], len(trace.stacks))


def with_called(parent: Int32, own: Int64) -> Int64:
    """The sum of `own` over each node and all nodes below it; a parent's number is lower than its children's."""
    total, parents = own.tolist(), parent.tolist()
    for node in range(len(total) - 1, -1, -1):
        if parents[node] >= 0:
            total[parents[node]] += total[node]
    return np.array(total, np.int64)


def depths(parent: Int32) -> Int64:
    """The number of callers of each node of a tree with these parents, -1 for the parent of a root."""
    depth = (parent >= 0).astype(np.int64)
    ancestor = parent
    while (further := ancestor >= 0).any():
        # Each round doubles how far up is known.
        depth = depth + np.where(further, depth[ancestor], 0)
        ancestor = np.where(further, ancestor[ancestor], -1)
    return depth


def _self_ns(trace: Trace, device: str) -> Int64:
    """Self time of the host, or time of the kernels of a device at the op that they belong to."""
    costs = event_costs(trace)
    if device == "CPU":
        return np.where(trace.on_device, 0, costs.self_ns)
    if device not in trace.devices:
        return np.zeros(len(trace), np.int64)
    of_device = trace.is_device_work & (trace.device == trace.devices.index(device))
    owner = kernel_owners(trace)
    kernels = np.flatnonzero(of_device & (owner >= 0))
    return sums(owner[kernels], trace.duration_ns[kernels], len(trace))
