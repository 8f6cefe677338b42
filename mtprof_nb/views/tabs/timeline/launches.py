"""Launches on a timeline: from the call on a thread to the kernel on a stream."""

from __future__ import annotations

import numpy as np

from mtprof_nb.analysis.devices.kernel_owners import kernel_owners
from mtprof_nb.analysis.nesting import nesting
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.trace import Bool, Int32, Int64, Trace
from mtprof_nb.views.scene import Answer
from mtprof_nb.views.tabs.timeline.timeline_blocks import Timeline

#: The most arrows that are drawn at once.
_MOST_ARROWS = 200


@once_a_trace
def _launches(trace: Trace) -> tuple[Int64, Int32]:
    """Kernels, and the call that launched each, or else the op that it belongs to; by the time of the call."""
    launch = (
        kernel_owners(trace)
        if trace.launch is None
        else np.where(trace.launch >= 0, trace.launch, kernel_owners(trace))
    )
    kernels = np.flatnonzero(trace.is_device_work & (launch >= 0))
    kernels = kernels[np.argsort(launch[kernels], kind="stable")]
    return kernels, launch[kernels]


def launches_of(chart: Timeline, event: int) -> Answer:
    """For a kernel, the arrow from its launch; otherwise the arrows to the kernels that the event launched.

    `total` is how many there are, of which the first are given.
    """
    trace = chart.trace
    kernels, calls = _launches(trace)
    if trace.on_device[event]:
        chosen = kernels == event
    else:
        starts = trace.start_ns[calls]
        inside = (starts >= trace.start_ns[event]) & (starts < trace.end_ns[event])
        chosen = (inside & (trace.track[calls] == trace.track[event])) | (calls == event)
    return {**_arrows(chart, kernels[chosen][:_MOST_ARROWS], calls[chosen][:_MOST_ARROWS]), "total": int(chosen.sum())}


def _arrows(chart: Timeline, kernels: Int64, calls: Int32) -> Answer:
    row, start_ns = chart.lanes.row, chart.trace.start_ns - chart.whole_ns[0]
    return {
        "from_row": row[calls].tolist(),
        "from_ns": start_ns[calls].tolist(),
        "to_row": row[kernels].tolist(),
        "to_ns": start_ns[kernels].tolist(),
    }


def all_launches(chart: Timeline, most: int) -> Answer:
    """The first launches of all: their arrows, and the events that a kernel belongs to.

    `within` has the events around each of these, innermost first: the columns `event` and `parent`, -1 for none.
    """
    trace = chart.trace
    kernels, calls = _launches(trace)
    kernels, calls = kernels[:most], calls[:most]
    owner, parent = kernel_owners(trace)[kernels], nesting(trace).parent
    around = np.unique(np.concatenate([owner[owner >= 0], calls]))
    level = around
    while len(level := np.unique(parent[level][parent[level] >= 0])):
        around = np.union1d(around, level)
    return {
        **_arrows(chart, kernels, calls),
        "kernel": kernels.tolist(),
        "call": calls.tolist(),
        "owner": owner.tolist(),
        "within": {"event": around.tolist(), "parent": parent[around].tolist()},
    }


def with_launches(trace: Trace, chosen: Bool) -> Bool:
    """`chosen`, the kernels that chosen events launched, the ops of chosen kernels, and the calls between them."""
    kernels, calls = _launches(trace)
    if not len(kernels):
        return chosen
    lit, owner = chosen.copy(), kernel_owners(trace)
    nested = nesting(trace)
    inside = chosen & ~trace.on_device
    for level in nested.levels()[1:]:
        inside[level] |= inside[nested.parent[level]]
    owned = np.where(owner[kernels] >= 0, inside[owner[kernels]], False)
    linked = chosen[kernels] | owned | inside[calls]
    lit[kernels[linked]] = True
    lit[calls[linked]] = True
    mine = owner[kernels[chosen[kernels]]]
    lit[mine[mine >= 0]] = True
    return lit
