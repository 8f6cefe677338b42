"""The path of the module whose forward is running, `Net.encoder.0`, from the outermost module that was called."""

from __future__ import annotations

import weakref
from typing import Any

from mtprof_nb.capture.buffer import Buffer


class ModulePaths:
    """Told of every module's forward as it begins and ends, on whatever thread."""

    def __init__(self, buffer: Buffer) -> None:
        self._local = buffer.local
        self._known: dict[tuple[str, int], tuple[weakref.ref[Any], str]] = {}

    def enter(self, module: Any) -> None:
        """The forward of `module` begins on this thread."""
        running = self._local.lane.modules
        parent, path = running[-1] if running else (None, "")
        running.append((weakref.ref(module), self._path(parent() if parent is not None else None, path, module)))

    def leave(self, module: Any) -> None:
        """It is over, also where it raised; so is what it called and nobody reported."""
        running = self._local.lane.modules
        while running and running.pop()[0]() is not module:
            pass

    def _path(self, parent: Any, path: str, module: Any) -> str:
        known = self._known.get((path, id(module)))
        if known is not None and known[0]() is module:
            return known[1]
        inner = () if parent is None else parent.named_modules()
        found = next((f"{path}.{name}" for name, child in inner if child is module), type(module).__name__)
        self._known[path, id(module)] = weakref.ref(module), found
        return found
