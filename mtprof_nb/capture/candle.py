"""Hook `candle`: the same points in Candle, whose dispatcher, autograd and fast paths are compiled."""

from __future__ import annotations

from typing import Any

from mtprof_nb.capture.enter_exit import EnterExitHook, Runtime
from mtprof_nb.capture.hook import Request
from mtprof_nb.trace import Trace

_RUNTIME = Runtime(
    "candle",
    engine="_C._autograd_engine",
    node="_C._autograd_node",
    cpu_storage=("_C._storage", "CyCPUUntypedStorage"),
)


class CandleHook(EnterExitHook):
    """Candle. Its compiled ways around the dispatcher ask a flag of their own, which is up while recording."""

    def __init__(self, request: Request) -> None:
        super().__init__(_RUNTIME, request)

    def start(self) -> None:
        """Record from here on."""
        set_flag = self._profiler._set_npu_functional_profiler_active
        set_flag(True)

        def kept_up(setter: Any) -> Any:
            return (lambda _active: setter(True)) if setter else setter

        # Candle's own profiler lowers the flag when it stops, also in the middle of this recording.
        self._patches.replace(self._profiler, "_NPU_FUNCTIONAL_PROFILER_SETTER", kept_up)
        super().start()

    def stop(self) -> Trace:
        """The window's trace. Harmless after a failed start."""
        trace = super().stop()
        self._profiler._set_npu_functional_profiler_active(self._profiler._ACTIVE_SESSION is not None)
        return trace
