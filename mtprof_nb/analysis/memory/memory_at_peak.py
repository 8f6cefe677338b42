"""The blocks of memory that stood at the peak."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtprof_nb.analysis.memory.allocation_pairs import releases_of
from mtprof_nb.analysis.memory.memory_curve import memory_curve, memory_devices, peak, rows_of_device
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.trace import Bool, Int64, Trace


@dataclass(frozen=True, eq=False)
class AtPeak:
    """Blocks of the device that held the most, at the moment of its peak."""

    time_ns: int
    nbytes: int
    #: Positions of their allocations.
    rows: Int64
    #: For each allocator record the position of its release, or -1.
    release: Int64

    def is_released(self, rows: Int64) -> Bool:
        """Which of these blocks were released later in the recording."""
        released: Bool = self.release[rows] >= 0
        return released


@once_a_trace
def held_at_peak(trace: Trace) -> AtPeak | None:
    """The blocks at the highest peak of any device; None without allocator records."""
    records = trace.allocations
    tops = [(top, device) for device in memory_devices(trace) if (top := peak(memory_curve(trace, device))) is not None]
    if records is None or not tops:
        return None
    top, device = max(tops, key=lambda pair: pair[0].nbytes)
    rows, release = rows_of_device(trace, records, device), releases_of(trace, records)
    rows = rows[(records.nbytes[rows] > 0) & (records.time_ns[rows] <= top.time_ns)]
    until = np.where(release[rows] >= 0, records.time_ns[release[rows]], np.iinfo(np.int64).max)
    return AtPeak(top.time_ns, top.nbytes, rows[until > top.time_ns], release)
