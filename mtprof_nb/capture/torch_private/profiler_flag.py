"""Torch's own sign that a profiler records, which much of its Python code asks before it opens a scope."""

from __future__ import annotations

from typing import Any

from mtprof_nb.capture.patches import Patches


class ProfilerFlag:
    """Sets `torch.autograd.profiler._is_profiler_enabled` from `set` to `restore`.

    A profiler of torch's sets it as it starts and clears it as it stops. While ours is set, that is only noted, so that
    the flag is right in whatever order both start and stop.
    """

    def __init__(self, torch: Any) -> None:
        self._module = torch.autograd.profiler
        self._patches = Patches()
        self._is_set = False
        #: The value that torch alone would have given it.
        self._of_torch = False

    def set(self) -> None:
        if hasattr(self._module, "_set_is_profiler_enabled"):
            self._of_torch = self._module._is_profiler_enabled
            self._patches.replace(self._module, "_set_is_profiler_enabled", self._maker)
            self._is_set = self._module._is_profiler_enabled = True

    def restore(self) -> None:
        """Give the flag back to torch; a second call does nothing."""
        if self._is_set:
            self._is_set = False
            self._patches.undo()
            self._module._is_profiler_enabled = self._of_torch

    def _maker(self, original: Any) -> Any:
        def set_is_profiler_enabled(enable: bool) -> None:
            self._of_torch = enable
            original(enable or self._is_set)

        return set_is_profiler_enabled
