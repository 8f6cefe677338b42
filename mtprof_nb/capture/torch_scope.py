"""Scopes and steps for other listeners of torch: its own profiler, an execution-trace observer, a daemon."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager
from typing import Any, Literal

#: The name under which we count. Torch's profiler has its own; the largest count is torch's number of steps.
_REQUESTER = "mtprof_nb"


def torch_scope(name: str, args: str | None = None) -> AbstractContextManager[Any] | None:
    """Torch's own `record_function`; None where torch is not imported, or imported in part."""
    make = _of_torch("record_function")
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


def observer_from_environment() -> Any:
    """The observer that torch makes where ENABLE_PYTORCH_EXECUTION_TRACE is 1; None otherwise, or without torch."""
    torch = sys.modules.get("torch")
    if torch is None or os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE") != "1":
        return None
    return torch.profiler.ExecutionTraceObserver.build_execution_trace_obs_from_env()


def count_steps(action: Literal["init_step_count", "increment_step", "erase_step_count"]) -> None:
    """Add our count of steps to torch's tracker, advance it, or remove it; without torch, nothing happens.

    As torch's own profiler, we advance it only while a daemon monitors the program.
    """
    tracker = _of_torch("KinetoStepTracker")
    if tracker is not None and (action != "increment_step" or os.environ.get("KINETO_USE_DAEMON")):
        getattr(tracker, action)(_REQUESTER)


def _of_torch(name: str) -> Any:
    """A name of torch's low-level profiler; None while torch is not imported, or imported in part."""
    return getattr(sys.modules.get("torch.autograd.profiler"), name, None)
