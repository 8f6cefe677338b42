"""Hook `scopes`: records scopes alone, while no runtime is imported."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from mtprof_nb.capture.hook import Request
from mtprof_nb.capture.shared.buffer import OP_FIELDS, Buffer
from mtprof_nb.capture.shared.freezing import Vocabulary, freeze
from mtprof_nb.model.trace import Trace

#: Every column that a flag may ask for, all without ops.
_FIELDS = (*OP_FIELDS, "shapes", "stack", "flops", "module")


class ScopesHook:
    """Records the scopes of the user's code, and no ops."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._buffer = Buffer(request, _FIELDS)

    def prepare(self) -> None:
        """Nothing to do."""

    def start(self) -> None:
        """Record from here on."""
        self._buffer = Buffer(self._request, _FIELDS)

    def stop(self) -> Trace:
        """The scopes so far."""
        return freeze(self._buffer, Vocabulary())

    def abandon(self) -> None:
        """In a forked child: keep nothing."""
        self._buffer.discard()

    def scope(self, name: str, args: str | None = None) -> AbstractContextManager[Any]:  # noqa: ARG002 - for Kineto alone
        """A scope."""
        return self._buffer.scope(name)

    def toggle(self, enable: bool, activities: frozenset[str]) -> None:
        """Does nothing: scopes belong to no device."""
