"""The frames and objects that Python's garbage collector knows."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from functools import cached_property
from types import FrameType
from typing import Any

from mtprof_nb.building.paused_collector import collector_paused


def frames_of_others() -> dict[int, FrameType]:
    """The innermost frame of each thread but this one, by the thread's ident."""
    # Python 3.11 makes frames under a lock. A collection there may free objects that need the same lock.
    with collector_paused():
        frames = sys._current_frames()
    # Without this thread: a frame that a caller's local refers to is a cycle, which keeps all their locals alive.
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


class LivingObjects:
    """Modules and optimizers of PyTorch that exist. Python's objects are searched once, when either is asked for."""

    def __init__(self, torch: Any, search: Callable[..., list[list[Any]]] = living) -> None:
        self.torch = torch
        self._search = search

    @property
    def modules(self) -> list[Any]:
        """Instances of `torch.nn.Module`."""
        return self._found[0]

    @property
    def optimizers(self) -> list[Any]:
        """Instances of `torch.optim.Optimizer`."""
        return self._found[1]

    @cached_property
    def _found(self) -> list[list[Any]]:
        return self._search(self.torch.nn.Module, self.torch.optim.Optimizer)
