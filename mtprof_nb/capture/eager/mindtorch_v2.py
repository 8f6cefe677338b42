"""Hook `mindtorch_v2`: MindTorch v2's dispatcher, at the points that it calls around each kernel."""

from __future__ import annotations

from mtprof_nb.capture.eager.eager_hook import EnterExitHook, Runtime
from mtprof_nb.capture.hook import Request

_RUNTIME = Runtime(
    "mindtorch_v2",
    engine="_autograd.engine",
    node="_autograd.node",
    cpu_storage=("_storage", "_CPUUntypedStorage"),
)


class MindTorchHook(EnterExitHook):
    """MindTorch v2, which is Python throughout."""

    def __init__(self, request: Request) -> None:
        super().__init__(_RUNTIME, request)
