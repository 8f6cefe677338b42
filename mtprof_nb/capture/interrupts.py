"""Interrupts at the worst moments: while hooks come and go, and between a block and its `__exit__`."""

from __future__ import annotations

import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """An interrupt that comes inside arrives at the end, as it would have: whoever handles them is asked then.

    Nothing in threads other than the main one, where Python never delivers signals.
    """
    handler = signal.getsignal(signal.SIGINT)
    # `current_thread` would add a dummy to the process for good where the thread is not Python's own.
    if threading.get_ident() != threading.main_thread().ident or not callable(handler):
        yield
        return
    held: list[tuple[int, FrameType | None]] = []

    def hold(number: int, frame: FrameType | None) -> None:
        held.append((number, frame))

    signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        # What the block itself installed is the user's own.
        if signal.getsignal(signal.SIGINT) is hold:
            signal.signal(signal.SIGINT, handler)
        if held:
            handler(*held[0])


class GuardedExit:
    """An `__exit__` that is made up for where an interrupt leaves the block before `__exit__` has run a line.

    A signal that comes during `a @ b` at the end of a block is raised when `__exit__` is entered. But a `with`
    statement looks `__exit__` up first, and lets go of what it was given however the block ends: that is noticed.
    """

    def __init__(self, leave: Callable[..., Any]) -> None:
        self._leave = leave

    def __get__(self, manager: Any, kind: type | None = None) -> Callable[..., Any]:
        if manager is None:
            return self._leave
        # No function of Python's own, for a traceback would keep that.
        call = partial(self._leave, manager)
        manager.looked_up_exit = weakref.ref(call)
        return call


def when_left(exit_call: weakref.ref[Any] | None, act: Callable[[], Any]) -> weakref.ref[Any] | None:
    """A reference that has `act` called, as long as it is kept, when the block that looked up `exit_call` is left."""
    call = exit_call() if exit_call is not None else None
    return None if call is None else weakref.ref(call, lambda _: act())
