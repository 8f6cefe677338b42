"""The request of a session to a hook, and the protocol of a hook."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from mtprof_nb.capture.clock import Clock
from mtprof_nb.model.trace import RUNTIME, SCOPE, Bool, Int64, Recorded, SourceLine, Trace

#: Converts readings of `time.perf_counter_ns` to times of events.
EventTimes = Callable[[Int64], Int64]
#: Moments, and whether something was recorded from then on.
Switched = Sequence[tuple[int, bool]]


@dataclass(frozen=True)
class Request:
    """Options of one recording window, as the session gives them to each hook."""

    #: Device types to record: "CPU", "CUDA", "NPU", …
    activities: frozenset[str] = frozenset({"CPU"})
    #: torch's filters: kinds of event to collect of an activity.
    activity_filters: Mapping[str, frozenset[str]] = field(default_factory=dict)
    recorded: Recorded = field(default_factory=Recorded)
    #: Default for hooks that record everything at little cost; None: as for other hooks.
    recorded_if_cheap: Recorded | None = None
    max_events: int = 5_000_000
    clock: Clock = field(default_factory=Clock)
    trace_id: str = ""
    #: How long Kineto's events may take to be read; None for as long as it takes.
    post_processing_timeout_s: float | None = None
    #: torch's own experimental config, for hook `kineto` alone.
    experimental_config: Any = None
    #: Whether torch writes an execution trace meanwhile: then events carry its numbers.
    has_execution_trace: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.max_events, bool) or not isinstance(self.max_events, int) or self.max_events < 1:
            msg = f"max_events must be a whole number of at least 1, got {self.max_events!r}"
            raise ValueError(msg)
        if self.post_processing_timeout_s is not None and self.post_processing_timeout_s < 0:
            msg = f"post_processing_timeout_s must be non-negative, got {self.post_processing_timeout_s!r}"
            raise ValueError(msg)


def full(most: int) -> str:
    """Why a recording ended early, for `Unrecorded`, where it had as many events as were allowed."""
    return f"max_events={most:,} was reached; raise max_events, or use a schedule"


class SoFar(NamedTuple):
    """Ops and lines with the most self time so far, the slowest first: a name or a line, and nanoseconds."""

    ops: tuple[tuple[str, int], ...]
    lines: tuple[tuple[SourceLine, int], ...]
    #: Memory that the process holds; 0 where the system does not report it.
    resident_bytes: int = 0
    #: When the recording was full, by `time.perf_counter_ns`; 0 while it goes on.
    full_ns: int = 0


class Hook(Protocol):
    """Listens to one runtime for one window. `start` may fail; `stop` always leaves nothing installed."""

    def prepare(self) -> None:
        """Do slow work before `start`, in a schedule's warm-up; by default there is none."""
        return

    def start(self) -> None:
        """Install, and record from now on."""

    def check_thread(self) -> None:
        """Raise `SessionError` in a thread that cannot stop the hook; by default every thread can."""
        return

    def stop(self) -> Trace:
        """Uninstall, and return the events. Their column `step` is all 0: the session fills it in."""

    def so_far(self) -> SoFar | None:
        """Return the slowest ops and lines so far, and since when it is full; None where the hook knows none."""
        return None

    def abandon(self) -> None:
        """In a forked child: uninstall there, and keep nothing."""

    def scope(self, name: str, args: str | None = None) -> AbstractContextManager[Any]:
        """A context manager that records a named scope among this hook's events."""

    def toggle(self, enable: bool, activities: frozenset[str]) -> None:
        """Record, or leave out, ops of these device types from now on."""


def without_switched_off(trace: Trace, ops: Switched, devices: Switched = ()) -> Trace:
    """Leave out CPU ops that started, and what was launched, while the user had switched it off.

    Both lists have, for each call of `toggle`, its time and whether it switched recording on.
    """
    if not (ops or devices):
        return trace
    is_call = trace.kind == RUNTIME
    is_kept = _is_on(ops, trace.start_ns) | trace.on_device | (trace.kind == SCOPE) | is_call
    if devices:
        launch = np.full(len(trace), -1) if trace.launch is None else trace.launch
        launched_ns = np.where(launch >= 0, trace.start_ns[launch], trace.start_ns)
        is_kept &= _is_on(devices, launched_ns) | ~(trace.on_device | is_call)
    return trace.take(is_kept)


def _is_on(switched: Switched, moments_ns: Int64) -> Bool:
    state = np.array([True] + [enabled for _, enabled in switched])
    times = [moment for moment, _ in switched]
    enabled: Bool = state[np.searchsorted(times, moments_ns, side="right")]
    return enabled
