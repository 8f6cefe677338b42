"""Torch's count of steps, which its optimizers also advance: monitoring daemons read it."""

from __future__ import annotations

import os
import sys
from typing import Any

#: The name under which we count. Torch's profiler has its own; the largest count is torch's number of steps.
_REQUESTER = "mtprof_nb"


def begin_count() -> None:
    """Add our count, at torch's present number."""
    tracker = _tracker()
    if tracker is not None:
        tracker.init_step_count(_REQUESTER)


def advance_count() -> None:
    """Count a step, as torch's profiler does: only while a daemon monitors the program."""
    tracker = _tracker()
    if tracker is not None and os.environ.get("KINETO_USE_DAEMON"):
        tracker.increment_step(_REQUESTER)


def end_count() -> None:
    """Remove our count."""
    tracker = _tracker()
    if tracker is not None:
        tracker.erase_step_count(_REQUESTER)


def _tracker() -> Any:
    """Torch's tracker; None while torch is not imported, or imported in part."""
    profiler = sys.modules.get("torch.autograd.profiler")
    return getattr(profiler, "KinetoStepTracker", None)
