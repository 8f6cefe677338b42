"""Python's garbage collector, which must not run just anywhere."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def collector_paused() -> Iterator[None]:
    """No garbage collection inside: a hundred thousand short-lived objects would be scanned again and again."""
    was_enabled = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if was_enabled:
            gc.enable()


def current_frames() -> dict[int, FrameType]:
    """The innermost frame of each thread, by the thread's ident."""
    # Python 3.11 makes frames while it holds a lock that whatever a collection frees may want as well.
    with collector_paused():
        return sys._current_frames()
