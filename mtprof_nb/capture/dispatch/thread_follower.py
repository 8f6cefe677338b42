"""Follows threads during a recording, for a hook that must be installed on each thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from mtprof_nb.capture.patches import Patches


class ThreadFollower:
    """Enters `inside()` around the work of other threads.

    Threads that start meanwhile are followed, and work that a `concurrent.futures` pool gets meanwhile, even on older
    threads. Other threads that ran before are not: Python 3.11 has no way to run code there.
    """

    def __init__(self, inside: Callable[[], AbstractContextManager[Any]]) -> None:
        self._inside = inside
        self._patches = Patches()

    def install(self) -> None:
        from concurrent.futures import thread as pool

        self._patches.replace(threading.Thread, "_bootstrap_inner", self._followed)
        self._patches.replace(pool._WorkItem, "run", self._followed)

    def remove(self) -> None:
        """Follow no more; a second call does nothing."""
        self._patches.undo()

    def _followed(self, original: Callable[[Any], None]) -> Callable[[Any], None]:
        inside = self._inside

        def run(work: Any) -> None:
            with inside():
                original(work)

        return run
