"""Copies to a device from memory that is not pinned."""

from __future__ import annotations

import numpy as np

from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.program_time.recorded_time import line_of_longest, of_recorded
from mtprof_nb.model.intervals import covered_length
from mtprof_nb.model.trace import COPY, Int64, Trace

_NAME = "Pageable -> Device"
_FIX = """\
loader = DataLoader(dataset, batch_size=…, pin_memory=True)
x = x.to(device, non_blocking=True)"""


@rule
def pageable_copies(trace: Trace) -> Finding | None:
    """Find copies from pageable memory to a device, for which the host waits."""
    copies = np.flatnonzero((trace.kind == COPY) & trace.where_name(lambda name: _NAME in name))
    if not len(copies):
        return None
    ns = _with_hosts(trace, copies)
    return Finding(
        "Copies to the device come from memory that is not pinned",
        f"{units.plural(len(copies), 'transfer')} from pageable memory, and the ops that ask for them, take "
        f"{of_recorded(trace, ns)}; the host waits for each.",
        _FIX,
        line_of_longest(trace, copies),
        at_most_ns=ns,
    )


def _with_hosts(trace: Trace, copies: Int64) -> int:
    """The time in which a copy ran, or the op or call of the host that asked for it."""
    rows = {*copies.tolist()}
    for asking in (trace.launch, trace.launcher):
        rows |= {row for row in (asking[copies].tolist() if asking is not None else []) if row >= 0}
    order = np.array(sorted(rows), np.int64)
    return covered_length(trace.start_ns[order], trace.end_ns[order])
