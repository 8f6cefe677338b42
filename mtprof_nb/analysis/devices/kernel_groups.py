"""Kernels that are alike, copies of one direction, and collectives of one name: their calls, times and bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mtprof_nb.analysis.costs import op_costs
from mtprof_nb.analysis.devices.kernel_keys import COLLECTIVE_FACTS, DEVICE, DIRECTION, KERNEL_KEYS, kernel_facts
from mtprof_nb.analysis.groups import Groups, group, sums
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.trace import COLLECTIVE, COPY, Int64, Trace


@dataclass(frozen=True, eq=False)
class KernelGroups:
    """Kernels, copies, sets and collectives by `KERNEL_KEYS`; the time of a group is its `device_ns`."""

    groups: Groups
    shortest_ns: Int64
    longest_ns: Int64
    #: The mean of the estimated occupancy in percent, weighed by time; -1 where it is not known.
    occupancy: npt.NDArray[np.float64]


@once_a_trace
def kernel_groups(trace: Trace) -> KernelGroups:
    """All work on devices, one group for each kernel, op, stream and shape of the launch."""
    work = np.flatnonzero(trace.is_device_work)
    groups = group(trace, *KERNEL_KEYS, costs=op_costs(trace), positions=work)
    number, duration, occupancy = groups.of_event[work], trace.duration_ns[work], kernel_facts(trace).occupancy[work]
    shortest, longest = np.full(len(groups), np.iinfo(np.int64).max), np.zeros(len(groups), np.int64)
    np.minimum.at(shortest, number, duration)
    np.maximum.at(longest, number, duration)
    known = occupancy >= 0
    weight = sums(number[known], duration[known], len(groups))
    weighed = sums(number[known], duration[known] * occupancy[known], len(groups))
    return KernelGroups(groups, shortest, longest, np.where(weight > 0, weighed / np.maximum(weight, 1), -1.0))


@once_a_trace
def copy_groups(trace: Trace) -> Groups:
    """Copies by device and direction."""
    copies = np.flatnonzero(trace.kind == COPY)
    return group(trace, DEVICE, DIRECTION, costs=op_costs(trace), positions=copies)


@once_a_trace
def collective_groups(trace: Trace) -> Groups:
    """Collectives by device, name, group of processes and element type."""
    collectives = np.flatnonzero(trace.kind == COLLECTIVE)
    return group(trace, DEVICE, COLLECTIVE_FACTS, costs=op_costs(trace), positions=collectives)
