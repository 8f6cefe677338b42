"""The request of a session, the protocol of a hook, and the hooks that there are."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

from mtprof_nb.errors import HookError
from mtprof_nb.trace import Recorded, Trace


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


@dataclass(frozen=True)
class HookKind:
    """A hook's name, the module that must be imported for it, and where it lives here."""

    name: str
    runtime: str
    module: str
    factory: str

    @property
    def runtime_is_imported(self) -> bool:
        """Whether the user's program has its runtime loaded."""
        return self.runtime in sys.modules

    def make(self, request: Request) -> Hook:
        """A hook ready to start; `HookError` where its runtime cannot be had."""
        if not self.runtime_is_imported and find_spec(self.runtime) is None:
            msg = f"hook {self.name!r} needs {self.runtime!r}, which is not installed: install it, or use hook='auto'"
            raise HookError(msg)
        hook: Hook = getattr(import_module(self.module), self.factory)(request)
        return hook


HOOK_KINDS = {
    kind.name: kind
    for kind in (
        HookKind("kineto", "torch", "mtprof_nb.capture.kineto", "KinetoHook"),
        HookKind("dispatch", "torch", "mtprof_nb.capture.dispatch", "DispatchHook"),
        HookKind("mindtorch_v2", "mindtorch_v2", "mtprof_nb.capture.mindtorch_v2", "MindTorchHook"),
        HookKind("candle", "candle", "mtprof_nb.capture.candle", "CandleHook"),
    )
}
#: What `auto` hooks, where the runtime is imported.
AUTO = ("kineto", "mindtorch_v2", "candle")


def make_hooks(name: str, request: Request) -> dict[str, Hook]:
    """The hooks that `name` stands for; for `auto`, one for each runtime imported (perhaps none)."""
    if name == "auto":
        return {kind: HOOK_KINDS[kind].make(request) for kind in AUTO if HOOK_KINDS[kind].runtime_is_imported}
    if name not in HOOK_KINDS:
        msg = f"unknown hook {name!r}: use 'auto' or one of {', '.join(HOOK_KINDS)}"
        raise HookError(msg)
    return {name: HOOK_KINDS[name].make(request)}
