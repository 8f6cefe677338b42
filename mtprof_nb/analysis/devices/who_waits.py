"""A sentence on whether devices wait for the host, or the host for devices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mtprof_nb.analysis import units
from mtprof_nb.analysis.devices.device_figures import DeviceFigures, device_figures
from mtprof_nb.analysis.devices.recorded_devices import device_work
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.analysis.summary import wall_ns
from mtprof_nb.model.trace import Trace

#: From this share of idle time in its span on, a device is called idle, and busy below it.
_IDLE = 0.3
#: From this share of the recording on, the sentence has the time before and after the work of devices.
_OUTSIDE = 0.3
#: Several devices work together if their spans are on average this share of the time from the first kernel to the last.
_TOGETHER = 0.7
#: From this share of the device's span on, the sentence reports that the host waits for it.
_WAITS = 0.05
#: The words for the time of devices that work throughout the recording.
_THROUGHOUT = "the time"
_NAMES = {"CUDA": "GPU", "HIP": "GPU"}


@once_a_trace
def who_waits(trace: Trace) -> str:
    """Which side waits for which, as "the GPU is idle 92 % of the time, waiting for the host"; "" if it is not clear.

    The time is that from the first kernel of a device to its last; where the recording is much longer, the sentence
    has both. Several devices are taken together.
    """
    figures = device_figures(trace)
    span_ns = sum(one.span_ns for one in figures)
    if not span_ns:
        return ""
    idle_ns = sum(one.idle_ns for one in figures)
    time, more = _lengths(trace)
    if are_busy(trace):
        sentence = _of_busy(figures, f"{(span_ns - idle_ns) / span_ns * 100:.0f} % of {time}", span_ns)
    else:
        sentence = _of_idle(figures, f"{idle_ns / span_ns * 100:.0f} % of {time}", idle_ns)
    return sentence and sentence + more


def work_throughout(trace: Trace) -> bool:
    """Whether the time from the first kernel of all devices to the last is most of the recording."""
    return _lengths(trace)[0] == _THROUGHOUT


def are_busy(trace: Trace) -> bool:
    """Whether there are devices, and they work most of the time from the first kernel to the last."""
    figures = device_figures(trace)
    return sum(one.idle_ns for one in figures) < _IDLE * sum(one.span_ns for one in figures)


def devices_title(trace: Trace) -> str:
    """As "the GPU", or "the 2 GPUs"."""
    return _named(device_figures(trace))


def _lengths(trace: Trace) -> tuple[str, str]:
    """The words for the time of the devices, and for the length of a recording that is much longer.

    Devices that work at different times have no time in common.
    """
    figures, rows = device_figures(trace), np.concatenate(list(device_work(trace).values()))
    span_ns, whole_ns = int(trace.end_ns[rows].max() - trace.start_ns[rows].min()), wall_ns(trace)
    if sum(one.span_ns for one in figures) < _TOGETHER * len(figures) * span_ns:
        return "their time", ""
    if whole_ns - span_ns < _OUTSIDE * whole_ns:
        return _THROUGHOUT, ""
    first_to_last = f"the {units.duration(span_ns)} from the first kernel to the last"
    return first_to_last, f"; the recording takes {units.duration(whole_ns)}"


def _of_idle(figures: Sequence[DeviceFigures], share: str, idle_ns: int) -> str:
    late_ns = sum(one.idle_host_ns for one in figures)
    synchronised_ns = sum(one.idle_synchronisation_ns for one in figures)
    if late_ns + synchronised_ns < idle_ns / 2:
        return ""
    reason = "after the host waited for {them}" if synchronised_ns > late_ns else "waiting for the host"
    are, them = ("is", "it") if len(figures) == 1 else ("are", "them")
    return f"{_named(figures)} {are} idle {share}, {reason.format(them=them)}"


def _of_busy(figures: Sequence[DeviceFigures], share: str, span_ns: int) -> str:
    are, them = ("is", "it") if len(figures) == 1 else ("are", "them")
    waits = sum(one.host_waiting_ns for one in figures) >= _WAITS * span_ns
    end = f", and the host waits for {them}" if waits else ""
    return f"{_named(figures)} {are} busy {share}{end}"


def _named(figures: Sequence[DeviceFigures]) -> str:
    names = {_NAMES.get(one.device.name, one.device.name) for one in figures}
    name = names.pop() if len(names) == 1 else "device"
    return f"the {name}" if len(figures) == 1 else f"the {len(figures)} {name}s"
