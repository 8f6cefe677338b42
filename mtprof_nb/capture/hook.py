"""The request of a session, the protocol of a hook, and the hooks that there are."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from mtprof_nb.model.trace import Int64, Recorded, Trace

#: The times of events at moments of the monotonic clock, `time.perf_counter_ns`.
EventTimes = Callable[[Int64], Int64]


class Clock:
    """Unix nanoseconds that never go back: the wall clock is read at first, then only the monotonic one."""

    def __init__(self) -> None:
        # A thread may be put aside between two readings: of a few pairs, the closest is right.
        self.offset_ns = min(_apart_and_offset_ns() for _ in range(8))[1]

    def now_ns(self) -> int:
        """The present moment."""
        return time.perf_counter_ns() + self.offset_ns

    def wall_ahead_ns(self) -> int:
        """How far the wall clock, which may be corrected at any time, is ahead of this one now."""
        return min(_apart_and_offset_ns() for _ in range(4))[1] - self.offset_ns


def _apart_and_offset_ns() -> tuple[int, int]:
    """How long it took to read both clocks, and how far the wall clock is ahead of the monotonic one."""
    before, wall, after = time.perf_counter_ns(), time.time_ns(), time.perf_counter_ns()
    return after - before, wall - (before + after) // 2


@dataclass(frozen=True)
class Request:
    """Content of one recording window, as the session asks for it."""

    #: Device types to record: "CPU", "CUDA", "NPU", …
    activities: frozenset[str] = frozenset({"CPU"})
    #: torch's filters: kinds of event to collect of an activity.
    activity_filters: Mapping[str, frozenset[str]] = field(default_factory=dict)
    recorded: Recorded = field(default_factory=Recorded)
    max_events: int = 5_000_000
    clock: Clock = field(default_factory=Clock)
    trace_id: str = ""
    #: How long Kineto's events may take to be read; None for as long as it takes.
    post_processing_timeout_s: float | None = None
    #: torch's own experimental config, for hook `kineto` alone.
    experimental_config: Any = None
    #: Whether torch writes an execution trace meanwhile, whose calls are to be found by number.
    has_execution_trace: bool = False


class Hook(Protocol):
    """Listens to one runtime for one window. `start` may fail; `stop` always leaves nothing installed."""

    def prepare(self) -> None:
        """Do what is slow before `start` (a schedule's warm-up)."""

    def start(self) -> None:
        """Install, and record from now on."""

    def stop(self) -> Trace:
        """Uninstall and freeze. `step` is all 0: the session knows the steps."""

    def abandon(self) -> None:
        """In a forked child: uninstall there, and keep nothing."""

    def scope(self, name: str, args: str | None = None) -> AbstractContextManager[Any]:
        """A named scope in this hook's own stream of events."""

    def toggle(self, enable: bool, activities: frozenset[str]) -> None:
        """Record, or leave out, ops of these device types from now on."""
