"""The devices of a recording: those with memory, and those that ran kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.trace import Allocations, Bool, Int8, Int32, Int64, Trace


@dataclass(frozen=True)
class Device:
    """A device of one process. Its text is torch's, `cpu` or `cuda:0`, and of several processes the owner."""

    name: str
    #: -1 if the runtime does not report it.
    index: int
    #: The process that used it: its position in the trace, and its title where there are several.
    process: int = 0
    owner: str = ""

    def __str__(self) -> str:
        name = self.name.lower() if self.name == "CPU" or self.index < 0 else f"{self.name.lower()}:{self.index}"
        return f"{name} of {self.owner}" if self.owner else name


def distinct_devices(trace: Trace, device: Int8, index: Int8, track: Int32) -> list[Device]:
    """The devices with these types, indices and tracks, process by process, in the order of the trace's types."""
    # One number for type and index, whose least is -128: counting is many times faster than sorting pairs.
    code = device.astype(np.int64) * 256 + index + 128
    devices = []
    for process, rows in enumerate(trace.by_process(track)):
        owner = trace.processes[process].title if len(trace.processes) > 1 else ""
        numbers = np.flatnonzero(np.bincount(code[rows])).tolist()
        devices += [Device(trace.devices[one // 256], one % 256 - 128, process, owner) for one in numbers]
    return devices


def is_of_device(trace: Trace, rows: Trace | Allocations, device: Device) -> Bool:
    """Which rows, events of `trace` or records of its allocations, are of one device in one process."""
    number = trace.devices.index(device.name) if device.name in trace.devices else -1
    matches: Bool = (rows.device == number) & (rows.device_index == device.index)
    if len(trace.processes) > 1:
        matches &= trace.processes_of(rows.track) == device.process
    return matches


@once_a_trace
def device_work(trace: Trace) -> dict[Device, Int64]:
    """For each device its kernels, copies, sets and collectives, as positions of events; devices without are left out.

    These are what keeps a device busy. Synchronisations and scopes on a device are not among them.
    """
    work = trace.is_device_work
    devices = distinct_devices(trace, trace.device[work], trace.device_index[work], trace.track[work])
    return {device: np.flatnonzero(work & is_of_device(trace, trace, device)) for device in devices}


@once_a_trace
def device_numbers(trace: Trace) -> Int32:
    """For each kernel, copy, set and collective the position of its device in `device_work`; -1 for other events."""
    numbers = np.full(len(trace), -1, np.int32)
    for number, work in enumerate(device_work(trace).values()):
        numbers[work] = number
    return numbers
