"""Hook `scopes`: records scopes alone, while no runtime is imported."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from mtprof_nb.capture.buffers.buffer import OP_FIELDS, Buffer, fact_fields
from mtprof_nb.capture.buffers.freezing import Vocabulary, freeze
from mtprof_nb.capture.hook import Hook, Request, SoFar
from mtprof_nb.model.trace import Trace


class ScopesHook(Hook):
    """Records the scopes of the user's code, and no ops."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self.start()

    def start(self) -> None:
        self._buffer = Buffer(self._request, (*OP_FIELDS, *fact_fields(self._request.recorded)))

    def stop(self) -> Trace:
        return freeze(self._buffer, Vocabulary())

    def so_far(self) -> SoFar | None:
        return self._buffer.so_far()

    def abandon(self) -> None:
        self._buffer.discard()

    def scope(self, name: str, args: str | None = None) -> AbstractContextManager[Any]:  # noqa: ARG002 - for Kineto alone
        return self._buffer.scope(name)

    def toggle(self, enable: bool, activities: frozenset[str]) -> None:
        """Does nothing: scopes belong to no device."""
