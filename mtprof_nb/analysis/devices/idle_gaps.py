"""Gaps in the work of a device or stream, and why nothing ran in them."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from mtprof_nb.analysis.devices.recorded_devices import Device, device_work
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.intervals import covered, covered_length, covered_until, merged, runs_of_equal
from mtprof_nb.model.trace import COPY, RUNTIME, SYNC, Bool, Int8, Int32, Int64, Trace

#: Why a device was idle: positions in this are causes.
CAUSES = ("host", "kernel", "synchronisation", "other")
HOST, KERNEL_TO_KERNEL, SYNCHRONISATION, OTHER_CAUSE = range(4)
#: A device takes a few microseconds from one queued kernel to the next: below this length the gap is the device's.
#: Nearly all such gaps on V100, A100, H100, MI300 and RTX 2080 Ti are shorter.
BETWEEN_KERNELS_NS = 10_000
#: Calls that return when the device has done what it was given.
_SYNCHRONISES = re.compile(r"synchroni[sz]e|^[pu][ir](QueueFinish|Events?Wait)$", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Gaps:
    """Times in which nothing ran, in order."""

    start_ns: Int64
    end_ns: Int64
    #: Position in `CAUSES`.
    cause: Int8
    #: The event that ended the gap.
    event: Int32

    def __len__(self) -> int:
        return len(self.start_ns)

    def by_cause(self) -> dict[str, int]:
        """The nanoseconds of each cause."""
        length = self.end_ns - self.start_ns
        return {cause: int(length[self.cause == number].sum()) for number, cause in enumerate(CAUSES)}


@once_a_trace
def device_gaps(trace: Trace) -> dict[Device, Gaps]:
    """The gaps of each device."""
    return {device: idle_gaps(trace, work) for device, work in device_work(trace).items()}


def idle_gaps(trace: Trace, work: Int64) -> Gaps:
    """The gaps between the events at positions `work`, in order, which are those of one device or of one stream.

    The cause of a gap follows from the event that ended it:
    - It was launched after the gap began: *host*, or *synchronisation* if the thread that launched it was waiting for
      the device as the gap began.
    - Its launch was under way as the gap began: *host*, unless the gap is short and the launch a copy that the host
      waits for.
    - The gap is short: *kernel*, from one queued kernel to the next.
    - Its stream waited for an event of another stream: *synchronisation*.
    - Its launch is not known, or something else delayed it: *other*.
    """
    begins, finishes = merged(trace.start_ns[work], trace.end_ns[work])
    start, end = finishes[:-1], begins[1:]
    event = work[np.searchsorted(trace.start_ns[work], end)].astype(np.int32)
    launch = np.full(len(event), -1, np.int32) if trace.launch is None else trace.launch[event]
    launched_ns = np.where(launch >= 0, trace.start_ns[launch], np.iinfo(np.int64).min)
    returned_ns = np.where(launch >= 0, trace.end_ns[launch], np.iinfo(np.int64).min)
    is_late, under_way = launched_ns >= start, returned_ns > start
    is_short = end - start < BETWEEN_KERNELS_NS
    blocks = (launch >= 0) & is_synchronising(trace)[launch]
    cause = np.select(
        [
            is_late & _waited(trace, launch, start),
            is_late | (under_way & ~(blocks & is_short)),
            is_short,
            _has_sync(trace, event, start, end),
        ],
        [SYNCHRONISATION, HOST, KERNEL_TO_KERNEL, SYNCHRONISATION],
        OTHER_CAUSE,
    )
    return Gaps(start, end, cause.astype(np.int8), event)


@once_a_trace
def is_synchronising(trace: Trace) -> Bool:
    """The runtime calls in which the host waits for a device: by their names, and copies that end before the call."""
    waits: Bool = (trace.kind == RUNTIME) & trace.where_name(lambda name: bool(_SYNCHRONISES.search(name)))
    if trace.launch is not None:
        copies = np.flatnonzero((trace.kind == COPY) & (trace.launch >= 0))
        calls = trace.launch[copies]
        waits[calls[trace.end_ns[copies] <= trace.end_ns[calls]]] = True
    return waits


def host_waiting_ns(trace: Trace, process: int) -> int:
    """The time in which a thread of a process waited for a device in a synchronising call."""
    calls = np.flatnonzero(is_synchronising(trace) & (trace.processes_of(trace.track) == process))
    return covered_length(trace.start_ns[calls], trace.end_ns[calls])


def _waited(trace: Trace, launch: Int32, times: Int64) -> Bool:
    """Whether the thread of each launch was in a synchronising call at each of `times`."""
    waited = np.zeros(len(launch), np.bool_)
    waits = is_synchronising(trace)
    if not waits.any() or not len(launch):
        return waited
    track = np.where(launch >= 0, trace.track[launch], -1)
    for rows in runs_of_equal(track + 1):
        calls = np.flatnonzero(waits & (trace.track == track[rows[0]]))
        waited[rows] = covered(trace.start_ns[calls], trace.end_ns[calls], times[rows])
    return waited


def _has_sync(trace: Trace, event: Int32, start: Int64, end: Int64) -> Bool:
    """Whether the stream of each event waited for another in the time from `start` to `end`."""
    waited = np.zeros(len(event), np.bool_)
    waits = trace.kind == SYNC
    if not waits.any() or not len(event):
        return waited
    for rows in runs_of_equal(trace.track[event]):
        syncs = np.flatnonzero(waits & (trace.track == trace.track[event[rows[0]]]))
        first, last = trace.start_ns[syncs], trace.end_ns[syncs]
        waited[rows] = covered_until(first, last, end[rows]) > covered_until(first, last, start[rows])
    return waited
