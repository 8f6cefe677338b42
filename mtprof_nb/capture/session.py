"""The active session: at most one a process, its steps, its windows, and the scopes of the user's code."""

from __future__ import annotations

import atexit
import gc
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import InitVar, dataclass, field, replace
from functools import partial
from typing import Any, ParamSpec, Protocol, TypeVar, cast

from mtprof_nb.capture.async_scopes import OpenScope, OpenScopes, current_task
from mtprof_nb.capture.clock import Clock
from mtprof_nb.capture.decorated import decorated
from mtprof_nb.capture.finish import NO_STEP, StoppedWindow
from mtprof_nb.capture.hook import Request
from mtprof_nb.capture.torch_scope import count_steps, is_being_compiled, torch_scope
from mtprof_nb.capture.window import Window
from mtprof_nb.errors import SessionError, collected_warnings, warn

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


@dataclass(frozen=True)
class Options:
    """Options of a session."""

    name: str
    hook: str
    #: For each window; clock and trace id are filled in then.
    request: Request


class Owner(Protocol):
    """The profile that owns a session."""

    def step(self) -> None:
        """Begin the next step."""


@dataclass
class Session:
    """A recording from start to stop, with a window at a time."""

    options: Options
    #: The profile; a weak reference, so that a lost profile is noticed.
    owner: weakref.ref[Owner]
    first_step: InitVar[int] = 0
    clock: Clock = field(default_factory=Clock)
    window: Window | None = None
    #: True from the owner's start to its stop; False while a window is only prepared.
    is_started: bool = False
    #: True while `window` is recording.
    is_recording: bool = False
    scopes: OpenScopes = field(init=False)
    #: The number of each step, and when it began.
    _steps: list[tuple[int, int]] = field(default_factory=list)
    #: True from the end of a loop over `steps()` to the next step.
    is_after_loop: bool = False

    def __post_init__(self, first_step: int) -> None:
        self.scopes = OpenScopes(self.clock)
        self.begin_step(first_step)

    def begin_step(self, number: int) -> None:
        """Events that start from now on belong to this step."""
        if self._steps:
            count_steps("increment_step")
        self.is_after_loop = False
        self._steps.append((number, self.clock.now_ns()))

    def prepare(self, trace_id: str) -> Window:
        """Make a new window and warm it up."""
        request = replace(self.options.request, clock=self.clock, trace_id=trace_id)
        # Kept before it is prepared: a window that was prepared in part must be stopped too.
        self.window = Window(self.options.hook, request)
        self.window.prepare()
        return self.window

    def start(self) -> None:
        cast("Window", self.window).start()
        self.is_recording = True

    def check_thread(self) -> None:
        """Raise `SessionError` in a thread that cannot stop the window, before anything is lost."""
        if self.window is not None:
            for hook in self.window.hooks.values():
                hook.check_thread()

    def stop(self) -> tuple[StoppedWindow, list[tuple[int, int]], list[OpenScope]]:
        """Stop the window. Returns the arguments of `finish`: the window, the steps and the interleaved scopes."""
        self.is_recording = False
        # After an interrupt here the window is still there to be stopped.
        stopped = cast("Window", self.window).stop()
        self.window = None
        steps = self._steps
        if self.is_after_loop and len(steps) > 1:
            steps = [*steps[:-1], (NO_STEP, steps[-1][1])]
        return stopped, steps, self.scopes.take_interleaved()


_lock = threading.Lock()
_active: Session | None = None


def active() -> Session | None:
    return _active


def activate(session: Session) -> None:
    """Make `session` the active one; `SessionError` names another one that is in use."""
    global _active
    _end_unused(session)
    with _lock:
        if _active is not None and _active is not session:
            msg = (
                f"profiler {_active.options.name!r} is already active: stop it before another one is started; "
                "mtprof_nb.active().stop() does so"
            )
            raise SessionError(msg)
        if _active is None:
            count_steps("init_step_count")
        _active = session


def _end_unused(following: Session) -> None:
    """End the active session where its owner is gone, or has only prepared it, and warn."""
    unused = _active
    if unused is None or unused is following:
        return
    if unused.owner() is not None:
        gc.collect()  # the profile may be lost already, in a cycle
    is_lost = unused.owner() is None
    if not is_lost and (unused.is_started or unused.is_recording):
        return
    try:
        # Nobody reads the recording, so its warnings and errors are dropped.
        with collected_warnings([]), suppress(Exception):
            if unused.window is not None:
                unused.stop()
    finally:
        deactivate(unused)
    name = repr(unused.options.name)
    if is_lost:
        warn(f"profiler {name} was lost without stop(), and its recording is discarded: keep it in a variable")
    else:
        warn(f"profiler {name} was prepared but not started, and is ended: call its prepare_trace() again")


def deactivate(session: Session) -> None:
    """Let another session become active."""
    global _active
    with _lock:
        if _active is session:
            _active = None
            count_steps("erase_step_count")


def _forget_in_child() -> None:
    """A forked child is not recorded and may profile itself."""
    global _lock
    _lock = threading.Lock()
    _abandon()


@atexit.register
def _abandon() -> None:
    """End the active recording and keep nothing: a process that exits while Kineto records would crash."""
    global _active
    session, _active = _active, None
    if session is not None and session.window is not None:
        session.window.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)


#: An entered scope: its thread, its task, the context manager that records it, and a call for when it is left.
_Entered = tuple[int, "weakref.ref[Any] | None", AbstractContextManager[Any], "Callable[[], None] | None"]


class record_function:
    """A named scope, as a context manager or a decorator. While no profile of ours records, it is torch's own.

    As torch's, it does nothing in code that `torch.compile` compiles.
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = _checked_name(name)
        self.args = args
        #: One for each enter without an exit yet: by recursion, threads or tasks.
        self._open: list[_Entered] = []

    def __enter__(self) -> record_function:
        if is_being_compiled():
            return self
        session = _active
        # Another thread may end the recording meanwhile.
        window = session.window if session is not None and session.is_recording else None
        if session is not None and window is not None:
            entry = session.scopes.entering(self.name)
            scope = window.scope(self.name, self.args)
            try:
                scope.__enter__()
            except BaseException:
                session.scopes.left(entry)
                raise
            session.scopes.entered(entry)
            self._open.append((entry.thread, entry.task, scope, partial(session.scopes.left, entry)))
        elif (theirs := torch_scope(self.name, self.args)) is not None:
            theirs.__enter__()
            self._open.append((threading.get_ident(), current_task(), theirs, None))
        return self

    def __exit__(self, *exception: Any) -> None:
        if is_being_compiled():
            return
        if entered := self._entered_here():
            _, _, scope, note_left = entered
            self._open.remove(entered)
            if note_left is not None:
                note_left()
            scope.__exit__(*exception)

    def _entered_here(self) -> _Entered | None:
        """The scope that this thread and task entered last; else the last one of another thread or task."""
        entered = self._open.copy()
        if len(entered) < 2:
            return entered[0] if entered else None
        thread, task = threading.get_ident(), current_task()
        own = [one for one in entered if one[0] == thread and one[1] is task]
        return (own or entered)[-1]

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """`function` with each call in a scope; the scope of an `async def` ends with its coroutine."""
        return decorated(lambda: record_function(self.name, self.args), function, with_generators=False)


def _checked_name(name: object) -> str:
    if not isinstance(name, str):
        msg = f"the name of a scope must be a str, not {name!r}: use record_function(str(...))"
        raise TypeError(msg)
    return name


def step() -> None:
    """Begin the next step of the active profile; `SessionError` where there is none."""
    owner = _owner()
    if owner is None:
        msg = "step() needs an active profiler: call it inside `with profile()` or a %%mtprofile cell"
        raise SessionError(msg)
    owner.step()


def steps(iterable: Iterable[T]) -> Iterator[T]:
    """Yield the items of `iterable`; each pass of the loop is one step of the active profile, if there is one.

    What runs after the loop is in no step.
    """
    has_run = False
    for item in iterable:
        _note_loop(has_ended=False)
        has_run = True
        yield item
        owner = _owner()
        if owner is not None:
            owner.step()
    if has_run:
        _note_loop(has_ended=True)


def _note_loop(*, has_ended: bool) -> None:
    if _active is not None:
        _active.is_after_loop = has_ended


def _owner() -> Owner | None:
    """The profile of the active session; None without a session, or where the profile is lost."""
    session = _active
    return session.owner() if session is not None else None
