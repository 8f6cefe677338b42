"""Torch's execution-trace observer, which writes a trace of its own beside a recording."""

from __future__ import annotations

import os
import sys
from typing import Any


class ExecutionTrace:
    """The observer that the user gave, or that the environment asks for. Without one, every method does nothing."""

    def __init__(self, observer: Any) -> None:
        self.observer = observer or _observer_from_environment()

    def start(self) -> None:
        """Begin to observe."""
        if self.observer is not None:
            self.observer.start()

    def stop(self) -> None:
        """End observing."""
        if self.observer is not None:
            self.observer.stop()

    def cleanup(self) -> None:
        """Let the observer close its file."""
        if self.observer is not None:
            self.observer.cleanup()


def _observer_from_environment() -> Any:
    """The observer that torch makes where ENABLE_PYTORCH_EXECUTION_TRACE is 1; None otherwise, or without torch."""
    torch = sys.modules.get("torch")
    if torch is None or os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE") != "1":
        return None
    return torch.profiler.ExecutionTraceObserver.build_execution_trace_obs_from_env()
