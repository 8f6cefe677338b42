"""The allocator's events as the `[memory]` instants of a Chrome trace."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat

from mtprof_nb.export.chrome_lanes import Lanes
from mtprof_nb.export.chrome_text import Column, joined
from mtprof_nb.export.fixed_width import beside, choice, constant, digits, microseconds, row_texts
from mtprof_nb.trace import Int8, Int64, Trace

_CHUNK_ROWS = 1 << 14
#: c10's numbers of device types, which readers of these events expect.
_DEVICE_NUMBERS = {"CPU": 0, "CUDA": 1, "HIP": 6, "XLA": 9, "XPU": 12, "MPS": 13, "META": 14, "MTIA": 19, "NPU": 20}


def allocation_lines(trace: Trace, lanes: Lanes, base_ns: int) -> Iterator[bytes]:
    """A line for each allocation and release, ending in a comma."""
    allocations = trace.allocations
    if allocations is None:
        return
    devices = [str(_DEVICE_NUMBERS.get(name.upper(), -1)) for name in trace.devices]
    for first in range(0, len(allocations), _CHUNK_ROWS):
        rows = slice(first, first + _CHUNK_ROWS)
        columns = (
            constant('{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]"'),
            lanes.places_of_threads(allocations.thread[rows]),
            *microseconds(allocations.time_ns[rows] - base_ns),
            constant(',"args":{"Device Type":'),
            choice(devices, allocations.device[rows]),
            constant(',"Addr":'),
            digits(allocations.address[rows]),
        )
        yield joined(
            row_texts(beside(len(allocations.time_ns[rows]), *columns)),
            *_signed("Device Id", allocations.device_index[rows]),
            *_signed("Bytes", allocations.nbytes[rows]),
            *_signed("Total Allocated", allocations.total[rows]),
            repeat(b"}},\n"),
        )


def _signed(key: str, values: Int64 | Int8) -> tuple[Column, Column]:
    return repeat(f',"{key}":'.encode()), map(b"%d".__mod__, values.tolist())
