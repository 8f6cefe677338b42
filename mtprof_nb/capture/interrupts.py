"""Clean ends whatever fails: every step of an end runs, and interrupts wait while hooks are installed or removed."""

from __future__ import annotations

import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any


def run_all(*steps: Callable[[], Any] | None) -> None:
    """Call every step in order, also after one that fails, then raise the first failure. A step of None is skipped."""
    failure: BaseException | None = None
    for step in steps:
        try:
            if step is not None:
                step()
        except BaseException as error:
            failure = failure or error
    if failure is not None:
        raise failure


#: Signals whose handlers raise in programs: an interrupt, the alarm of a time limit, and a request to end. Others are
#: not held back: Python does not report whether system calls go on after a signal, and so could not put that back.
_RAISING = ("SIGINT", "SIGALRM", "SIGTERM")
_HELD = tuple(getattr(signal, name) for name in _RAISING if hasattr(signal, name))


#: Calls that a block may make beyond the limit of recursion: at the limit, an end would fail halfway.
_MORE_CALLS, _HIGHEST_LIMIT = 200, 2**31 - 1


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Delay SIGINT, SIGALRM and SIGTERM to the end of the block, where their handlers are called as usual.

    The block has room for calls even at the limit of recursion. Outside the main thread this does nothing, because
    Python delivers no signals there, and all threads have one limit.
    """
    # `current_thread` would add a dummy to the process for good where the thread is not Python's own.
    is_main = threading.get_ident() == threading.main_thread().ident
    handlers = {number: handler for number in _HELD if is_main and callable(handler := signal.getsignal(number))}
    held: dict[int, FrameType | None] = {}
    limit = sys.getrecursionlimit()
    raised = min(limit + _MORE_CALLS, _HIGHEST_LIMIT)

    def hold(number: int, frame: FrameType | None) -> None:
        held.setdefault(number, frame)

    try:
        if is_main:
            sys.setrecursionlimit(raised)
        for number in handlers:
            signal.signal(number, hold)
        yield
    finally:
        # A limit that was set inside the block is the user's.
        if is_main and sys.getrecursionlimit() == raised:
            sys.setrecursionlimit(limit)
        for number, handler in handlers.items():
            # A handler that was installed inside the block is the user's.
            if signal.getsignal(number) is hold:
                signal.signal(number, handler)
        run_all(*(partial(handlers[number], number, frame) for number, frame in held.items()))


#: Signals for an error of the thread itself, or that nobody can block.
_OF_THE_THREAD = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGABRT", "SIGSYS", "SIGKILL", "SIGSTOP")


@contextmanager
def threads_without_signals() -> Iterator[None]:
    """Threads that start in this block take no signals of the process.

    Where the program blocks a signal in its own threads, to wait for it with `sigwait` or a `signalfd`, the system
    would give it to ours: there it ends the process, or is lost.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    own = {getattr(signal, name) for name in _OF_THE_THREAD if hasattr(signal, name)}
    # Asked for alone: a handler that raises runs after the mask was changed.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - own)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class GuardedExit:
    """An `__exit__` whose work is done even if a signal arrives between the `with` body and its first line.

    A signal that comes during `a @ b` at the end of a block is raised when `__exit__` is entered. But a `with`
    statement looks `__exit__` up when it begins, and releases that callable however the block ends: `when_left`
    reacts to the release.
    """

    def __init__(self, leave: Callable[..., Any]) -> None:
        self._leave = leave

    def __get__(self, manager: Any, kind: type | None = None) -> Callable[..., Any]:
        if manager is None:
            return self._leave
        # A `partial`, because a traceback would keep a Python function alive.
        call = partial(self._leave, manager)
        manager.looked_up_exit = weakref.ref(call)
        return call


def when_left(exit_call: weakref.ref[Any] | None, act: Callable[[], Any]) -> weakref.ref[Any] | None:
    """A weak reference to `exit_call`; as long as you keep it, `act` is called when the `with` block is left."""
    call = exit_call() if exit_call is not None else None
    return None if call is None else weakref.ref(call, lambda _: act())
