"""What MindTorch v2 and Candle tell of memory: the device's own counter, and on the CPU Python's."""

from __future__ import annotations

import tracemalloc
from typing import Any


class RuntimeMemory:
    """Bytes held now. CPU tensors are numpy arrays, whose buffers `tracemalloc` counts, with all of Python's."""

    def __init__(self, package: Any) -> None:
        self._package = package
        self._is_ours = False

    def start(self) -> None:
        """Count what is allocated on the CPU from now on."""
        if not tracemalloc.is_tracing():
            tracemalloc.start()
            self._is_ours = True

    def stop(self) -> None:
        """Count no more, unless somebody else did before."""
        if self._is_ours:
            self._is_ours = False
            tracemalloc.stop()

    def held(self, device: Any) -> int:
        """Bytes on `device`, -1 where nobody counts them."""
        kind = getattr(device, "type", device)
        if kind == "cpu":
            return tracemalloc.get_traced_memory()[0] if tracemalloc.is_tracing() else -1
        try:
            return int(getattr(self._package, kind).memory_allocated())
        except Exception:  # a device that cannot tell, or is failing: its own error is the user's to see
            return -1
