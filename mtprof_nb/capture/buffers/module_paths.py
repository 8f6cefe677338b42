"""The path of the module whose forward is running, `Net.encoder.0`, from the outermost module that was called."""

from __future__ import annotations

import weakref
from contextlib import suppress
from typing import Any

from mtprof_nb.capture.buffers.buffer import Buffer


class _Names:
    """Paths by parent's path and module, looked up once for each."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], tuple[weakref.ref[Any], str]] = {}
        #: The path under which a parent first called each module.
        self._first: dict[int, tuple[weakref.ref[Any], str]] = {}

    def path(self, parent: Any, parent_path: str, module: Any) -> str:
        """The path of `module`, called by `parent`.

        A module that is not inside `parent`, or without a parent, keeps the path under which a parent called it
        before: a checkpoint calls a module again in the backward pass. Otherwise its path is its class name.
        """
        if known := self._alive(self._known.get((parent_path, id(module))), module):
            return known
        if parent is None:
            return self._elsewhere(module)
        inside = None
        with suppress(Exception):  # a parent that fails when asked for names must not fail the user's op
            inner = parent.named_modules()
            inside = next((f"{parent_path}.{name}" for name, child in inner if child is module), None)
        named = weakref.ref(module), self._elsewhere(module) if inside is None else inside
        if inside is not None and self._alive(self._first.get(id(module)), module) is None:
            self._first[id(module)] = named
        self._known[parent_path, id(module)] = named
        return named[1]

    def _elsewhere(self, module: Any) -> str:
        return self._alive(self._first.get(id(module)), module) or type(module).__name__

    @staticmethod
    def _alive(named: tuple[weakref.ref[Any], str] | None, module: Any) -> str | None:
        """The path that was found for `module`, and not for one that was at its address before."""
        return named[1] if named is not None and named[0]() is module else None


class ModulePaths:
    """The running modules of each thread; `enter` and `leave` are called around every module's forward."""

    def __init__(self, buffer: Buffer) -> None:
        self._local = buffer.local
        self._names = _Names()

    def enter(self, module: Any) -> None:
        """The forward of `module` begins on this thread."""
        running = self._local.records.modules
        parent, path = running[-1] if running else (None, "")
        own_path = self._names.path(parent() if parent is not None else None, path, module)
        running.append((weakref.ref(module), own_path))

    def leave(self, module: Any) -> None:
        """Note that a module's call has ended, also by an exception. Calls inside it without a note end with it."""
        running = self._local.records.modules
        while running and running.pop()[0]() is not module:
            pass
