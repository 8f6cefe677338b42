"""Hooks `mindtorch_v2` and `candle`: where each runtime keeps the parts that `EnterExitHook` listens to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mtprof_nb.capture.eager.eager_hook import EnterExitHook, Runtime
from mtprof_nb.capture.hook import Request
from mtprof_nb.model.trace import Trace

_WITHOUT_FAST_PATHS = (
    "Candle's fast paths for ops on an NPU were off, for they cannot be recorded: without a profiler, the program runs "
    "faster than shown."
)
_MINDTORCH = Runtime(
    "mindtorch_v2",
    engine="_autograd.engine",
    node="_autograd.node",
    cpu_storage=("_storage", "_CPUUntypedStorage"),
)
_CANDLE = Runtime(
    "candle",
    engine="_C._autograd_engine",
    node="_C._autograd_node",
    cpu_storage=("_C._storage", "CyCPUUntypedStorage"),
)


def _ran_on_npu(trace: Trace) -> bool:
    return any(trace.devices[device] == "NPU" for device in np.unique(trace.device).tolist())


class MindTorchHook(EnterExitHook):
    """MindTorch v2, which is Python throughout."""

    def __init__(self, request: Request) -> None:
        super().__init__(_MINDTORCH, request)


class CandleHook(EnterExitHook):
    """Candle, whose dispatcher and autograd are compiled. Its fast paths skip the dispatcher unless a flag is set."""

    def __init__(self, request: Request) -> None:
        super().__init__(_CANDLE, request)
        #: Sets the flag; None in a build without fast paths.
        self._set_flag = getattr(self._runtime.part("_C._tensor_api"), "cy_set_npu_profiler_active", None)

    def start(self) -> None:
        if self._set_flag is not None:
            set_flag = self._set_flag
            # Candle's own profiler clears the flag when it stops, also in the middle of this recording.
            name = "_NPU_FUNCTIONAL_PROFILER_SETTER"
            self._patches.replace(self._profiler, name, lambda _setter: lambda _active: set_flag(True))
            set_flag(True)
        super().start()

    def stop(self) -> Trace:
        """The window's trace, with a note where Candle would have run ops by its fast paths."""
        trace = super().stop()
        if self._set_flag is None or not _ran_on_npu(trace):
            return trace
        return replace(trace, notes=(*trace.notes, _WITHOUT_FAST_PATHS))

    def _remove(self) -> None:
        super()._remove()
        if self._set_flag is not None:
            self._set_flag(self._profiler._ACTIVE_SESSION is not None)
