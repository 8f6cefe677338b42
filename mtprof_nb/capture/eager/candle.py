"""Hook `candle`: the same points in Candle, whose dispatcher, autograd and fast paths are compiled."""

from __future__ import annotations

from mtprof_nb.capture.eager.eager_hook import EnterExitHook, Runtime
from mtprof_nb.capture.hook import Request

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
        #: Sets the flag; None in a build without the compiled ways.
        self._set_flag = getattr(self._runtime.part("_C._tensor_api"), "cy_set_npu_profiler_active", None)

    def start(self) -> None:
        """Record from here on."""
        if self._set_flag is not None:
            set_flag = self._set_flag
            # Candle's own profiler lowers the flag when it stops, also in the middle of this recording.
            name = "_NPU_FUNCTIONAL_PROFILER_SETTER"
            self._patches.replace(self._profiler, name, lambda _setter: lambda _active: set_flag(True))
            set_flag(True)
        super().start()

    def _remove(self) -> None:
        """Leave Candle as it was found."""
        super()._remove()
        if self._set_flag is not None:
            self._set_flag(self._profiler._ACTIVE_SESSION is not None)
