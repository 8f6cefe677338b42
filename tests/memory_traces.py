"""Traces with allocations for tests of the memory timeline."""

from typing import Any

from traces import event, make_trace

from mtprof_nb.model.trace import Recorded, Trace

ALL = Recorded(record_shapes=True, profile_memory=True, with_stack=True)
NOON = 1_794_790_055_432_501_123


def taken(microsecond: int, nbytes: int, address: int, event: int = -1, **facts: Any) -> dict[str, Any]:
    """An allocation, or a release of negative `nbytes`, so many microseconds after noon."""
    return {"time_ns": NOON + microsecond * 1000, "nbytes": nbytes, "address": address, "event": event, **facts}


def memory_trace() -> Trace:
    """300 bytes were held before; an op takes a temporary and an activation, and 100 of the old bytes go."""
    rows = [
        event("aten::mm", NOON, NOON + 10_000),
        event("MmBackward0", NOON + 50_000, NOON + 60_000, phase="backward", forward=0),
    ]
    allocations = [
        taken(1, 8, 16, 0, total=308),
        taken(2, 64, 32, 0, total=372),
        taken(3, -8, 16, 0, total=364),
        taken(3, -100, 48, 0, total=264),
    ]
    return make_trace(rows, allocations, recorded=ALL, label="<b>mine</b>")
