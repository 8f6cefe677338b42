"""The numbers of threads and processors of a recording, and ops that compute with all of these threads."""

from __future__ import annotations

import json
from typing import NamedTuple

from mtprof_nb.analysis.costs import counted_ops, op_costs
from mtprof_nb.model.trace import Bool, Trace
from mtprof_nb.model.tracks import THREADS

#: Ops that divide their work among all threads, whatever their shapes: products of matrices, and convolutions.
_PRODUCTS = frozenset(
    f"aten::{name}"
    for name in (
        *("mm", "addmm", "bmm", "baddbmm", "mkldnn_linear", "_slow_conv2d_forward", "slow_conv3d_forward"),
        *("mkldnn_convolution", "mkldnn_convolution_backward", "convolution_backward", "_nnpack_spatial_convolution"),
        *("_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention_for_cpu_backward"),
    )
)


#: No machine has more processors.
_MOST = 1 << 16


class ThreadCounts(NamedTuple):
    """Threads that torch computes with, and the processors and cores that the process may use."""

    threads: int
    processors: int
    cores: int
    #: How many processors of the machine were busy on average in the minute before; -1 if unknown.
    load: float
    #: The variable of the environment that sets the number of threads, or "".
    set_by: str = ""


def recorded_threads(trace: Trace) -> ThreadCounts | None:
    """The numbers of a recording of one process; None if it has none, or they are not as this package writes them."""
    try:
        metadata = json.loads(dict(trace.processes[0].metadata).get(THREADS, "null"))
    except ValueError:
        return None
    match metadata:
        case {"threads": int(), "processors": int(), "cores": int(), "load": float() | int()}:
            counts = ThreadCounts(**{name: metadata.get(name, "") for name in ThreadCounts._fields})
            is_sound = all(0 < count <= _MOST for count in counts[:3]) and -1 <= counts.load <= _MOST
            return counts if is_sound else None
    return None


def products(trace: Trace, least_ns: int, limit_ns: int | None = None) -> Bool:
    """The products and convolutions that take at least `least_ns` themselves, and less than `limit_ns`."""
    own_ns = op_costs(trace).self_ns
    chosen: Bool = counted_ops(trace) & trace.where_name(_PRODUCTS.__contains__) & (own_ns >= least_ns)
    return chosen if limit_ns is None else chosen & (own_ns < limit_ns)
