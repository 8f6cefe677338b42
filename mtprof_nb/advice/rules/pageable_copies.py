"""Copies to a device from memory that is not pinned."""

from __future__ import annotations

import numpy as np

from mtprof_nb.advice.finding import CERTAIN, Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.causes.recorded_time import recorded_ns
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.model.trace import COPY, Trace

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
    longest = int(copies[trace.duration_ns[copies].argmax()])
    line = int(attribution(trace).line[longest])
    ns = int(trace.duration_ns[copies].sum())
    return Finding(
        "Copies to the device come from memory that is not pinned",
        f"{units.plural(len(copies), 'transfer')} from pageable memory take "
        f"{units.duration(ns)} of {units.duration(recorded_ns(trace))}, and the host waits for each.",
        _FIX,
        attribution(trace).lines[line] if line >= 0 else None,
        at_most_ns=ns,
        certainty=CERTAIN,
    )
