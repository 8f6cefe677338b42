"""The wall clock beside a session's own: Kineto's times follow it, and it may be corrected, or set anew, meanwhile."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mtprof_nb.capture.hook import Clock
from mtprof_nb.model.trace import Int64

#: What moved by more was set anew.
_MOST_DRIFT_NS = 100_000_000


class WallClock:
    """Both clocks as they stood at the start and at the end of a recording.

    Kineto counts ticks, and lays them between the two wall times: a clock that was set anew stretches all of them, or
    turns them round.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        #: Moments of the session's clock, and how far the wall clock was ahead: in pairs, for one may be interrupted.
        self._noted: list[tuple[int, int]] = []

    def note(self) -> None:
        """Read both clocks."""
        self._noted.append((self._clock.now_ns(), self._clock.wall_ahead_ns()))

    @property
    def noted_ns(self) -> list[int]:
        """By the session's clock: when the wall clock was read."""
        return [moment for moment, _ in self._noted]

    @property
    def _ahead_ns(self) -> list[int]:
        return [ahead for _, ahead in self._noted]

    @property
    def drift_ns(self) -> int:
        """How far the wall clock has moved against the session's."""
        return self._ahead_ns[-1] - self._ahead_ns[0] if self._noted else 0

    @property
    def has_jumped(self) -> bool:
        """Whether it was set anew."""
        return abs(self.drift_ns) >= _MOST_DRIFT_NS

    @property
    def jump(self) -> str:
        """How it was set anew, in words."""
        return f"the system's clock was set by {self.drift_ns / 1e9:+,.1f} s meanwhile"

    @property
    def has_turned(self) -> bool:
        """Whether it ended before it began, and Kineto has the last event first."""
        return self._scale <= 0

    @property
    def _scale(self) -> float:
        return 1 + self.drift_ns / max(self.noted_ns[-1] - self.noted_ns[0], 1) if self._noted else 1.0

    def of_session(self, kineto_ns: Int64) -> Int64:
        """Kineto's times by the session's clock."""
        if not self._noted:
            return kineto_ns
        since_start = (kineto_ns - self.noted_ns[0] - self._ahead_ns[0]) / (self._scale or 1.0)
        return self.noted_ns[0] + since_start.astype(np.int64)

    def among_kineto(self, moments_ns: npt.ArrayLike) -> Int64:
        """Moments of the session's clock among Kineto's events, which follow a correction but not a jump."""
        moments = np.asarray(moments_ns, np.int64)
        if not self.drift_ns or self.has_jumped:
            return moments
        return moments + np.interp(moments, self.noted_ns, self._ahead_ns).astype(np.int64)
