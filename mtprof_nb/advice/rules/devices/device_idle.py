"""Devices that wait for the host to launch work."""

from __future__ import annotations

from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.devices.device_figures import device_figures
from mtprof_nb.analysis.program_time.data_loading import loader_calls
from mtprof_nb.model.trace import Trace

_LEAST_KERNELS, _LEAST_SHARE = 50, 0.3
_FIX = """\
model = torch.compile(model, mode="reduce-overhead")  # fewer launches
# or give each launch more work: larger batches, fewer and larger tensors"""


@rule
def device_waits_for_host(trace: Trace) -> Finding | None:
    """Find a device that is idle for 30 % of its span because the host launched its kernels too late.

    Fewer launches can save all idle time, and all of the kernels that are shorter than a launch. Short kernels are no
    finding of their own: a device that is busy with them loses nothing to launches, whether or not larger kernels would
    do the same work in less time is not in the recording, and one that is not busy is found here.
    """
    # While the host waits for input, more work for each launch does not help.
    input_ns = int(trace.duration_ns[loader_calls(trace)].sum())
    for one in device_figures(trace):
        if one.kernels >= _LEAST_KERNELS and one.idle_host_ns - input_ns >= _LEAST_SHARE * one.span_ns:
            short = f"; {units.number(one.short_kernels)} of {units.plural(one.kernels, 'kernel')} take under 10 µs"
            return Finding(
                "The device waits for the host",
                f"{one.device} is idle for {units.duration(one.idle_host_ns)} of {units.duration(one.span_ns)} because "
                f"the host launched the next kernel too late{short}.",
                _FIX,
                at_most_ns=min(one.idle_ns + one.short_kernels_ns, one.span_ns),
            )
    return None
