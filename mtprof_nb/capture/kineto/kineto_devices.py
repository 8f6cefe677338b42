"""Kineto's events on devices, and the calls that launched them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mtprof_nb.building.interning import first_with_number, intern
from mtprof_nb.capture.kineto.kineto_events import KinetoColumns
from mtprof_nb.model.kineto_kinds import kind_of_activity, kind_on_device
from mtprof_nb.model.schema import Bool, Columns, Int8, Int32, Int64
from mtprof_nb.model.trace import RUNTIME, Track, on_device


def read_devices(columns: KinetoColumns, kineto_event: Any, device_name: Callable[[str], str]) -> Columns:
    """Kinds, devices, launches and tracks of all events.

    Slow, and needed only with devices.
    """
    events = columns.events
    device, devices = intern([device_name(event.device_type().name) for event in events])
    on_cpu = np.array([name == "CPU" for name in devices] or [False], np.bool_)[device]
    kind = _device_kinds([event.activity_type() for event in events], on_cpu)
    accessors = ("correlation_id", "linked_correlation_id", "device_index", "device_resource_id")
    correlation, linked, index, resource = (
        np.fromiter(map(getattr(kineto_event, accessor), events), np.int64, len(events)) for accessor in accessors
    )
    # Ops have numbers of their own, which calls of the runtime may have too.
    ops, calls = np.flatnonzero((linked == 0) & (kind < 0)), np.flatnonzero(kind == RUNTIME)
    found: Columns = {
        "device": device.astype(np.int8),
        "devices": devices,
        # For events on the CPU, Kineto's index is the process id.
        "device_index": np.where(on_cpu, 0, index).astype(np.int8),
        "kind": np.where(kind >= 0, kind, columns.kind),
        "launcher": first_with_number(correlation, ops, linked, linked > 0),
        "launch": first_with_number(correlation, calls, correlation, ~on_cpu & (correlation > 0)),
    }
    return found | _tracks(columns, found, resource)


def _device_kinds(activities: Sequence[str], on_cpu: Bool) -> Int8:
    """The kind of each event that ran on a device or drove one, -1 for the others."""
    distinct = dict.fromkeys(activities)
    runtime = {name: RUNTIME if kind_of_activity(name) == RUNTIME else -1 for name in distinct}
    kinds = {name: kind_on_device(name) for name in distinct}
    pairs = zip(activities, on_cpu.tolist(), strict=True)
    return np.fromiter((runtime[name] if host else kinds[name] for name, host in pairs), np.int8, len(activities))


def _tracks(columns: KinetoColumns, found: Columns, resource: Int64) -> Columns:
    """Tracks: a stream for each event on a device, and for a call the thread that made it.

    Kineto's number of a thread is, for what runs on a device, and for a call outside ops, that of another thread.
    """
    kind: Int8 = found["kind"]
    tracks, track = list(columns.threads), columns.thread.copy()
    positions = {thread.native_id: position for position, thread in enumerate(tracks)}
    calls = np.flatnonzero((kind == RUNTIME) & (found["launcher"] < 0))
    track[calls] = [positions.get(native_id, at) for native_id, at in _pairs(resource[calls], track[calls])]
    rows = np.flatnonzero(on_device(kind))
    streams: dict[tuple[int, int, int], int] = {}
    keys = zip(*(column[rows].tolist() for column in (found["device"], found["device_index"], resource)), strict=True)
    for row, (device, index, number) in zip(rows.tolist(), keys, strict=True):
        if (device, index, number) not in streams:
            streams[device, index, number] = len(tracks)
            title = f"{found['devices'][device]}:{index}"
            tracks.append(Track(number, f"stream {number}", "stream", device=title))
        track[row] = streams[device, index, number]
    return {"track": track, "tracks": tuple(tracks)}


def _pairs(first: Int64, second: Int32) -> zip[tuple[int, int]]:
    return zip(first.tolist(), second.tolist(), strict=True)
