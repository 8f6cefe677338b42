"""The allocator's events as the `[memory]` instants of a Chrome trace, and garbage collections as spans."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mtprof_nb.export.chrome_tracks import ChromeTracks
from mtprof_nb.export.fixed_width import beside, choice, constant, integers, microseconds, signed_integers
from mtprof_nb.model.device_facts import DEVICE_TYPES
from mtprof_nb.model.trace import Trace

_CHUNK_ROWS = 1 << 14
#: c10's numbers of device types, which tools expect.
_DEVICE_NUMBERS = {name: number for number, name in DEVICE_TYPES.items()} | {"CUDA": 1, "HIP": 6}


def allocation_lines(trace: Trace, tracks: ChromeTracks, base_ns: int) -> Iterator[bytes]:
    """A line for each allocation and release, ending in a comma."""
    allocations = trace.allocations
    if allocations is None:
        return
    devices = [str(_DEVICE_NUMBERS.get(name.upper(), -1)) for name in trace.devices]
    on_host = np.array([name == "CPU" for name in trace.devices])
    reserved = allocations.reserved
    for first in range(0, len(allocations), _CHUNK_ROWS):
        stop = min(first + _CHUNK_ROWS, len(allocations))
        rows = slice(first, stop)
        yield beside(
            stop - first,
            constant('{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]"'),
            tracks.fields_of_tracks(allocations.track[rows]),
            *microseconds(allocations.time_ns[rows] - base_ns),
            constant(',"args":{"Device Type":'),
            choice(devices, allocations.device[rows]),
            constant(',"Device Id":'),
            # Kineto's index of the host is -1.
            signed_integers(np.where(on_host[allocations.device[rows]], -1, allocations.device_index[rows])),
            constant(',"Addr":'),
            signed_integers(allocations.address[rows]),
            constant(',"Bytes":'),
            signed_integers(allocations.nbytes[rows]),
            constant(',"Total Allocated":'),
            signed_integers(allocations.total[rows]),
            constant(',"Total Reserved":'),
            integers(np.zeros(stop - first, np.int64) if reserved is None else reserved[rows]),
            constant(',"finished":false,"Ev Idx":'),
            integers(np.arange(len(trace) + first, len(trace) + stop)),
            constant("}},\n"),
        ).tobytes()


def collection_lines(trace: Trace, tracks: ChromeTracks, base_ns: int) -> Iterator[bytes]:
    """A line for each collection, ending in a comma."""
    collections = trace.collections
    if collections is None:
        return
    for first in range(0, len(collections), _CHUNK_ROWS):
        part = collections.take(np.arange(first, min(first + _CHUNK_ROWS, len(collections))))
        yield beside(
            len(part),
            constant('{"ph":"X","cat":"garbage_collection","name":"garbage collection"'),
            tracks.fields_of_tracks(part.track),
            *microseconds(np.maximum(part.start_ns - base_ns, 0)),
            constant(',"dur":'),
            *microseconds(part.duration_ns),
            constant(',"args":{"generation":'),
            integers(part.generation.astype(np.int64)),
            constant("}},\n"),
        ).tobytes()
