"""Scopes and steps for other listeners of torch: its own profiler, an execution-trace observer, a daemon."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager
from typing import Any

#: The name under which we count. Torch's profiler has its own; the largest count is torch's number of steps.
_REQUESTER = "mtprof_nb"


def torch_scope(name: str, args: str | None = None) -> AbstractContextManager[Any] | None:
    """Torch's own `record_function`; None where torch is not imported, or imported in part."""
    profiler = sys.modules.get("torch.autograd.profiler")
    make = getattr(profiler, "record_function", None)
    return None if make is None else make(name, args)


def is_being_compiled() -> bool:
    """Whether torch's compiler is tracing the calling code."""
    ask = getattr(sys.modules.get("torch.compiler"), "is_dynamo_compiling", None)
    return ask is not None and ask()


class Together:
    """Two scopes as one: `own` around `other`."""

    def __init__(self, own: AbstractContextManager[Any], other: AbstractContextManager[Any]) -> None:
        self._own, self._other = own, other

    def __enter__(self) -> None:
        self._own.__enter__()
        try:
            self._other.__enter__()
        except BaseException:
            self._own.__exit__(*sys.exc_info())
            raise

    def __exit__(self, *exception: Any) -> None:
        try:
            self._other.__exit__(*exception)
        finally:
            self._own.__exit__(*exception)


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
