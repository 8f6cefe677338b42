"""The op or scope that each kernel belongs to, also where the runtime names none."""

from __future__ import annotations

import numpy as np

from mtprof_nb.analysis.nesting import is_among, nesting
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.trace import OP, SCOPE, STEP_PREFIX, Bool, Int32, Trace

#: How the name begins of the scope around code that torch.compile made.
_REGIONS = ("Torch-Compiled Region", "CompiledFunction", "## Call CompiledFxGraph")
#: Calls that launch all kernels of a recorded graph.
_GRAPH_LAUNCHES = ("cudaGraphLaunch", "cuGraphLaunch", "hipGraphLaunch")


@once_a_trace
def kernel_owners(trace: Trace) -> Int32:
    """For each event on a device and each runtime call, the event that it belongs to, or -1.

    Mostly that is the op that the runtime names. The runtime names none for a kernel that is launched outside ops, such
    as by code of torch.compile or by replaying a CUDA graph. Such a kernel belongs to the first of these that there is:
    - the innermost op, or region of torch.compile, that was running when it was launched
    - the call that launched its graph
    - the innermost scope at that time, unless it is a profiler step
    - the call that launched it
    """
    owner = np.full(len(trace), -1, np.int32) if trace.launcher is None else trace.launcher.copy()
    if trace.launch is None:
        return owner
    alone = np.flatnonzero(trace.on_device & (owner < 0) & (trace.launch >= 0))
    if not len(alone):
        return owner
    launch = trace.launch[alone]
    calls, position = np.unique(launch, return_inverse=True)
    is_region = (trace.kind == SCOPE) & trace.where_name(lambda name: name.startswith(_REGIONS))
    is_step = trace.where_name(lambda name: name.startswith(STEP_PREFIX))
    op = _innermost(trace, calls, (trace.kind == OP) | is_region)
    scope = _innermost(trace, calls, (trace.kind == SCOPE) & ~is_step)
    nearest = np.select([op >= 0, is_graph_launch(trace)[calls], scope >= 0], [op, calls, scope], calls)
    owner[alone] = nearest[position]
    return owner


def owns_kernels(trace: Trace) -> Bool:
    """The events that kernels, copies, sets or collectives belong to."""
    return is_among(trace, kernel_owners(trace)[trace.is_device_work])


@once_a_trace
def is_graph_launch(trace: Trace) -> Bool:
    """The runtime calls that launch all kernels of a graph."""
    return trace.where_name(lambda name: name.startswith(_GRAPH_LAUNCHES))


def _innermost(trace: Trace, calls: Int32, among: Bool) -> Int32:
    """For each of `calls` the innermost event of `among` around it, or -1."""
    parent = np.append(nesting(trace).parent, -1)
    around = parent[calls]
    while (further := (around >= 0) & ~among[around]).any():
        around[further] = parent[around[further]]
    return around
