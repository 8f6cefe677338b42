"""A sentence that says whether devices wait for the host, or the host for devices."""

from __future__ import annotations

from collections.abc import Sequence

from mtprof_nb.analysis.devices.device_figures import DeviceFigures, device_figures
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.trace import Trace

#: A device is said to be idle from this share of its span on, and to be busy up to that one.
_IDLE, _BUSY = 0.3, 0.1
#: The host is said to wait for a device from this share of the device's span on.
_WAITS = 0.05
_NAMES = {"CUDA": "GPU", "HIP": "GPU"}


@once_a_trace
def who_waits(trace: Trace) -> str:
    """Which side waits for which, as "the GPU is idle 92 % of the time, waiting for the host"; "" if it is not clear.

    The time is that from the first kernel of a device to its last. Several devices are taken together.
    """
    figures = device_figures(trace)
    span_ns = sum(one.span_ns for one in figures)
    if not span_ns:
        return ""
    idle_ns = sum(one.idle_ns for one in figures)
    if idle_ns >= _IDLE * span_ns:
        return _of_idle(figures, idle_ns, span_ns)
    if idle_ns <= _BUSY * span_ns:
        return _of_busy(figures, span_ns - idle_ns, span_ns)
    return ""


def _of_idle(figures: Sequence[DeviceFigures], idle_ns: int, span_ns: int) -> str:
    late_ns = sum(one.idle_host_ns for one in figures)
    synchronised_ns = sum(one.idle_synchronisation_ns for one in figures)
    if late_ns + synchronised_ns < idle_ns / 2:
        return ""
    reason = "after the host waited for {them}" if synchronised_ns > late_ns else "waiting for the host"
    are, them = ("is", "it") if len(figures) == 1 else ("are", "them")
    return f"{_named(figures)} {are} idle {idle_ns / span_ns * 100:.0f} % of the time, {reason.format(them=them)}"


def _of_busy(figures: Sequence[DeviceFigures], busy_ns: int, span_ns: int) -> str:
    are, them = ("is", "it") if len(figures) == 1 else ("are", "them")
    waits = sum(one.host_waiting_ns for one in figures) >= _WAITS * span_ns
    end = f", and the host waits for {them}" if waits else ""
    return f"{_named(figures)} {are} busy {busy_ns / span_ns * 100:.0f} % of the time{end}"


def _named(figures: Sequence[DeviceFigures]) -> str:
    names = {_NAMES.get(one.device.name, one.device.name) for one in figures}
    name = names.pop() if len(names) == 1 else "device"
    return f"the {name}" if len(figures) == 1 else f"the {len(figures)} {name}s"
