"""The figures of each device of a recording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mtprof_nb.analysis.devices.idle_gaps import device_gaps, host_waiting_ns
from mtprof_nb.analysis.devices.recorded_devices import Device, device_work
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.intervals import covered_length
from mtprof_nb.model.trace import COLLECTIVE, COPY, KERNEL, SET, Int64, Trace

#: A kernel below this length takes less time than its launch.
SHORT_KERNEL_NS = 10_000


@dataclass(frozen=True)
class DeviceFigures:
    """Figures of one device, in nanoseconds and bytes.

    Work on a device is kernels, copies, sets and collectives. The span reaches from the start of the first of these to
    the end of the last. `computing_ns`, `exposed_communication_ns`, `exposed_copies_ns` and `idle_ns` sum up to
    `span_ns`; the first three to `busy_ns`; the four causes to `idle_ns`.
    """

    device: Device
    #: Streams with work.
    streams: int
    span_ns: int
    busy_ns: int
    idle_ns: int
    #: Time in which a kernel or a set ran.
    computing_ns: int
    #: Time in which a collective ran, and neither a kernel nor a set.
    exposed_communication_ns: int
    #: Time in which a copy ran, and nothing else.
    exposed_copies_ns: int
    #: Time in which a collective ran, or a copy, exposed or not.
    communication_ns: int
    copies_ns: int
    #: The share of communication during which the device computed; None without communication.
    overlap: float | None
    #: Idle time because the host launched the next kernel too late.
    idle_host_ns: int
    #: Idle time between queued kernels.
    idle_kernel_ns: int
    #: Idle time after the host waited for the device, or while a stream waited for another.
    idle_synchronisation_ns: int
    #: Idle time for another reason, or for none that is known.
    idle_other_ns: int
    #: From the end of a launch to the start of its kernel; None if no launch is known.
    launch_delay_median_ns: int | None
    launch_delay_mean_ns: int | None
    launch_delay_max_ns: int | None
    #: Work that was launched and had not started: the most at once, and the average over time.
    queue_max: int
    queue_mean: float
    kernels: int
    #: Kernels that took less than 10 µs, and their time.
    short_kernels: int
    short_kernels_ns: int
    copies: int
    #: Bytes that copies, and collectives, moved; None if not known.
    copied_bytes: int | None
    collectives: int
    collective_bytes: int | None
    #: Time in which the host, on any thread of the process, waited for a device in a synchronising call.
    host_waiting_ns: int


@once_a_trace
def device_figures(trace: Trace) -> tuple[DeviceFigures, ...]:
    """The figures of each device with work; empty without one."""
    return tuple(_figures(trace, device, work) for device, work in device_work(trace).items())


def _figures(trace: Trace, device: Device, work: Int64) -> DeviceFigures:
    idle = device_gaps(trace)[device].by_cause()
    kind, duration = trace.kind[work], trace.duration_ns[work]
    is_short = (kind == KERNEL) & (duration < SHORT_KERNEL_NS)
    return DeviceFigures(
        device=device,
        streams=len(np.unique(trace.track[work])),
        **_busy_times(trace, work),
        **{f"idle_{cause}_ns": ns for cause, ns in idle.items()},
        **_launches(trace, work),
        kernels=int((kind == KERNEL).sum()),
        short_kernels=int(is_short.sum()),
        short_kernels_ns=int(duration[is_short].sum()),
        copies=int((kind == COPY).sum()),
        copied_bytes=_moved(trace, work[kind == COPY]),
        collectives=int((kind == COLLECTIVE).sum()),
        collective_bytes=_moved(trace, work[kind == COLLECTIVE]),
        host_waiting_ns=host_waiting_ns(trace, device.process),
    )


def _busy_times(trace: Trace, work: Int64) -> dict[str, Any]:
    """The figures of how long a device was busy, and with which kind of work."""
    start, end, kind = trace.start_ns[work], trace.end_ns[work], trace.kind[work]

    def length(*kinds: int) -> int:
        """The time in which events of these kinds ran, on any stream."""
        chosen = np.isin(kind, kinds)
        return covered_length(start[chosen], end[chosen])

    span, busy = int(end.max() - start[0]), covered_length(start, end)
    without_copies, computing = length(KERNEL, SET, COLLECTIVE), length(KERNEL, SET)
    exposed, communication = without_copies - computing, length(COLLECTIVE)
    return {
        "span_ns": span,
        "busy_ns": busy,
        "idle_ns": span - busy,
        "computing_ns": computing,
        "exposed_communication_ns": exposed,
        "exposed_copies_ns": busy - without_copies,
        "communication_ns": communication,
        "copies_ns": length(COPY),
        "overlap": 1 - exposed / communication if communication else None,
    }


def _launches(trace: Trace, work: Int64) -> dict[str, Any]:
    """The figures of delays from launch to start, and of the queue of work that had not started."""
    rows = work[:0] if trace.launch is None else work[trace.launch[work] >= 0]
    launch = rows if trace.launch is None else trace.launch[rows]
    started = trace.start_ns[rows]
    # Work that started before its launch returned has no delay.
    delay = np.maximum(started - trace.end_ns[launch], 0)
    time = np.concatenate([np.minimum(trace.start_ns[launch], started), started])
    change = np.repeat([1, -1], len(rows))
    # Of one moment, launches come first.
    order = np.lexsort((-change, time))
    length, lasted = np.cumsum(change[order]), np.diff(time[order])
    whole = int(lasted.sum())
    return {
        "launch_delay_median_ns": int(np.median(delay)) if len(rows) else None,
        "launch_delay_mean_ns": round(float(delay.mean())) if len(rows) else None,
        "launch_delay_max_ns": int(delay.max()) if len(rows) else None,
        "queue_max": int(length.max(initial=0)),
        "queue_mean": float((lasted * length[:-1]).sum() / whole) if whole else 0.0,
    }


def _moved(trace: Trace, rows: Int64) -> int | None:
    """Bytes that these events moved; None if no event has a known number."""
    if trace.moved_bytes is None or not (trace.moved_bytes[rows] >= 0).any():
        return None
    return int(np.maximum(trace.moved_bytes[rows], 0).sum())
