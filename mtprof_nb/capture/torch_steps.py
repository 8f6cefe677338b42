"""torch's count of steps, which its optimizers advance as well: for tools that follow a training from outside."""

from __future__ import annotations

import os
import sys
from typing import Any

#: A name of our own: torch's profiler counts under another one, and the largest count is torch's number of steps.
_REQUESTER = "mtprof_nb"


def begin_count() -> None:
    """Take part in the count from its present number on."""
    tracker = _tracker()
    if tracker is not None:
        tracker.init_step_count(_REQUESTER)


def advance_count() -> None:
    """Count a step where torch's profiler does: while a daemon follows the program."""
    tracker = _tracker()
    if tracker is not None and os.environ.get("KINETO_USE_DAEMON"):
        tracker.increment_step(_REQUESTER)


def end_count() -> None:
    """Take part no more."""
    tracker = _tracker()
    if tracker is not None:
        tracker.erase_step_count(_REQUESTER)


def _tracker() -> Any:
    """Torch's tracker; None while torch is not imported, or imported in part."""
    profiler = sys.modules.get("torch.autograd.profiler")
    return getattr(profiler, "KinetoStepTracker", None)
