"""Torch's execution-trace observer, which writes a trace of its own during a recording."""

from __future__ import annotations

import os
import sys
from typing import Any


def observer_from_environment() -> Any:
    """The observer that torch makes where ENABLE_PYTORCH_EXECUTION_TRACE is 1; None otherwise, or without torch."""
    torch = sys.modules.get("torch")
    if torch is None or os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE") != "1":
        return None
    return torch.profiler.ExecutionTraceObserver.build_execution_trace_obs_from_env()
