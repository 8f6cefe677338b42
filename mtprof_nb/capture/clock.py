"""The clock of a session, and the wall clock, which Kineto's times follow and which may be set meanwhile."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

from mtprof_nb.model.trace import Int64

#: A wall clock that moved by more was set, not corrected.
_MOST_DRIFT_NS = 100_000_000


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


class WallClock:
    """Readings of both clocks at the start and at the end of a recording.

    Kineto counts ticks, and maps them to the interval between the two wall times. A clock that was set meanwhile
    stretches all times, or reverses them.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        #: When the wall clock was read, by the session's clock, and how far it was ahead then.
        self.noted_ns: list[int] = []
        self._ahead_ns: list[int] = []

    def note(self) -> None:
        """Read both clocks."""
        self.noted_ns.append(self._clock.now_ns())
        self._ahead_ns.append(self._clock.wall_ahead_ns())

    @property
    def drift_ns(self) -> int:
        """How far the wall clock has moved against the session's."""
        return self._ahead_ns[-1] - self._ahead_ns[0] if self.noted_ns else 0

    @property
    def has_jumped(self) -> bool:
        """Whether the wall clock was set."""
        return abs(self.drift_ns) >= _MOST_DRIFT_NS

    @property
    def jump(self) -> str:
        """The jump in words, for a warning."""
        return f"the system's clock was set by {self.drift_ns / 1e9:+,.1f} s meanwhile"

    @property
    def has_turned(self) -> bool:
        """Whether the recording ended before it began by the wall clock, so that Kineto's last event comes first."""
        return self._scale <= 0

    @property
    def _scale(self) -> float:
        return 1 + self.drift_ns / max(self.noted_ns[-1] - self.noted_ns[0], 1) if self.noted_ns else 1.0

    def of_session(self, kineto_ns: Int64) -> Int64:
        """Convert Kineto's times to the session's clock."""
        if not self.noted_ns:
            return kineto_ns
        since_start = (kineto_ns - self.noted_ns[0] - self._ahead_ns[0]) / (self._scale or 1.0)
        return self.noted_ns[0] + since_start.astype(np.int64)

    def among_kineto(self, moments_ns: npt.ArrayLike) -> Int64:
        """Convert times of the session's clock to Kineto's, which follow a correction but not a jump."""
        moments = np.asarray(moments_ns, np.int64)
        if not self.drift_ns or self.has_jumped:
            return moments
        return moments + np.interp(moments, self.noted_ns, self._ahead_ns).astype(np.int64)
