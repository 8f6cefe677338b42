"""Python's garbage collector: pausing it, and the frames and objects that it knows."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


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


def frames_of_others() -> dict[int, FrameType]:
    """The innermost frame of each thread but this one, by the thread's ident."""
    # Python 3.11 makes frames while it holds a lock that whatever a collection frees may want as well.
    with collector_paused():
        frames = sys._current_frames()
    # A frame that is held by its own callers is a cycle, which keeps the locals of all of them until a collection.
    frames.pop(threading.get_ident(), None)
    return frames


def living(*bases: type) -> list[list[Any]]:
    """The living instances of each class, found without touching any other object."""
    found: list[list[Any]] = [[] for _ in bases]
    home: dict[type, list[Any] | None] = {}
    for thing in gc.get_objects():
        kind = type(thing)
        if kind not in home:
            home[kind] = next(
                (things for things, base in zip(found, bases, strict=True) if issubclass(kind, base)), None
            )
        if (things := home[kind]) is not None:
            things.append(thing)
    return found
