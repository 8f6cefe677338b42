"""Scopes of hook `kineto`: torch's own, but for those that outlive the recording they began in."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

#: Never told of their end, nor freed, which would tell them: Kineto would write it into memory that it has freed.
_OUTLIVED: list[Any] = []


class KinetoScope:
    """torch's `scope` for as long as `is_recording()` says yes; `opened` has it from its enter to its exit."""

    def __init__(self, scope: Any, is_recording: Callable[[], bool], opened: set[KinetoScope]) -> None:
        self.name: str = scope.name
        self.native_id = 0
        self._scope = scope
        self._is_recording = is_recording
        self._opened = opened

    def __enter__(self) -> None:
        self.native_id = threading.get_native_id()
        self._opened.add(self)
        try:
            self._scope.__enter__()
        except BaseException:
            self._opened.discard(self)
            raise

    def __exit__(self, *exception: Any) -> None:
        if self._is_recording():
            self._opened.discard(self)
            self._scope.__exit__(*exception)


def keep_open(scopes: Iterable[KinetoScope]) -> None:
    """Let these scopes, whose recording has ended, never end."""
    _OUTLIVED.extend(scope._scope for scope in scopes)
