"""The clock of a session."""

from __future__ import annotations

import time


class Clock:
    """Unix nanoseconds that never go back: the wall clock is read at first, then only the monotonic one."""

    def __init__(self) -> None:
        # The thread may be suspended between two readings: of a few pairs, the closest is right.
        self.offset_ns = min(_apart_and_offset_ns() for _ in range(8))[1]

    def now_ns(self) -> int:
        return time.perf_counter_ns() + self.offset_ns

    def wall_ahead_ns(self) -> int:
        """How far the wall clock, which may be corrected at any time, is ahead of this one now."""
        return min(_apart_and_offset_ns() for _ in range(4))[1] - self.offset_ns


def _apart_and_offset_ns() -> tuple[int, int]:
    """How long it took to read both clocks, and how far the wall clock is ahead of the monotonic one."""
    before, wall, after = time.perf_counter_ns(), time.time_ns(), time.perf_counter_ns()
    return after - before, wall - (before + after) // 2
