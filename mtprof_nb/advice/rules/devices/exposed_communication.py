"""Collectives during which a device computes nothing."""

from __future__ import annotations

from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.devices.device_figures import device_figures
from mtprof_nb.model.trace import Trace

_FIX = """\
model = DistributedDataParallel(model, bucket_cap_mb=…, gradient_as_bucket_view=True)
# with gradient accumulation: with model.no_sync(): loss.backward()"""


@rule
def exposed_communication(trace: Trace) -> Finding | None:
    """Find the device whose collectives run longest while it computes nothing."""
    one = max(device_figures(trace), key=lambda figures: figures.exposed_communication_ns, default=None)
    if one is None or not one.exposed_communication_ns:
        return None
    return Finding(
        "Communication is not hidden behind computing",
        f"{one.device} runs {units.plural(one.collectives, 'collective')} and computes nothing meanwhile for "
        f"{units.duration(one.exposed_communication_ns)} of {units.duration(one.span_ns)}; this includes waiting for "
        "the other ranks.",
        _FIX,
        at_most_ns=one.exposed_communication_ns,
    )
