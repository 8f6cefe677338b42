"""Memory that a program asks a device's driver for, again and again, after it has warmed up."""

from __future__ import annotations

import re

import numpy as np

from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.program_time.recorded_time import line_of_longest, of_recorded
from mtprof_nb.model.trace import RUNTIME, Trace

#: Calls of a driver that allocate or release; those in the order of a stream are cheap and do not count.
_CALLS = re.compile(r"(cuda|hip|acl?rt)(Host)?(Malloc|Free|Alloc)(Host|Managed)?", re.IGNORECASE)
_LEAST_CALLS = 4
_FIX = """\
# no torch.cuda.empty_cache() in the loop; batches of one size; and before the program starts:
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True\""""


@rule
def device_allocations(trace: Trace) -> Finding | None:
    """Find calls that allocate or release memory of a device in the second half of the work on devices.

    In the first half, the allocator of PyTorch may still be growing to the size that the program needs.
    """
    work = np.flatnonzero(trace.is_device_work)
    if not len(work):
        return None
    middle_ns = int(trace.start_ns[work[0]] + trace.end_ns[work].max()) // 2
    every = np.flatnonzero((trace.kind == RUNTIME) & trace.where_name(lambda name: bool(_CALLS.fullmatch(name))))
    calls = every[trace.start_ns[every] >= middle_ns]
    if len(calls) < _LEAST_CALLS:
        return None
    ns = int(trace.duration_ns[calls].sum())
    return Finding(
        "Memory of the device is allocated anew while the program runs",
        f"In the second half, {units.plural(len(calls), 'call')} that allocate or release memory of the device take "
        f"{of_recorded(trace, ns)}.",
        _FIX,
        line_of_longest(trace, calls),
        found_ns=ns,
        at_most_ns=int(trace.duration_ns[every].sum()),
    )
