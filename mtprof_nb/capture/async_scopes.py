"""Scopes of asyncio tasks that take turns: a scope does not contain the work of another task that runs meanwhile."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtprof_nb.capture.clock import Clock
from mtprof_nb.model.trace import SCOPE, Bool, Trace

#: How far a hook's clock may be from the session's.
_TOLERANCE_NS = 20_000


@dataclass(eq=False)
class OpenScope:
    """An entered scope."""

    name: str
    #: A weak reference to the task, one object for all scopes of a task.
    task: weakref.ref[Any] | None
    thread: int
    entering_ns: int
    entered_ns: int = 0
    is_interleaved: bool = False


class OpenScopes:
    """The open scopes of each thread, and the scopes during which another task opened or closed one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._of_thread = threading.local()
        self._interleaved: list[OpenScope] = []

    def entering(self, name: str) -> OpenScope:
        """Note a scope that is about to be entered."""
        opened: list[OpenScope] | None = getattr(self._of_thread, "scopes", None)
        if opened is None:
            opened = self._of_thread.scopes = []
        scope = OpenScope(name, current_task(), threading.get_ident(), self._clock.now_ns())
        self._note_suspended(opened, scope.task)
        opened.append(scope)
        return scope

    def _note_suspended(self, opened: list[OpenScope], running: weakref.ref[Any] | None) -> None:
        """Mark scopes of tasks other than the running one. A scope outside all tasks contains the event loop."""
        for one in opened:
            if one.task is not None and one.task is not running and not one.is_interleaved:
                one.is_interleaved = True
                self._interleaved.append(one)

    def take_interleaved(self) -> list[OpenScope]:
        """The interleaved scopes that were found since the last call."""
        taken, self._interleaved = self._interleaved, []
        return taken

    def entered(self, scope: OpenScope) -> None:
        scope.entered_ns = self._clock.now_ns()

    def left(self, scope: OpenScope) -> None:
        """Note that the scope is closed; one that was opened on another thread stays in that thread's list."""
        opened: list[OpenScope] = getattr(self._of_thread, "scopes", [])
        if scope in opened:
            opened.remove(scope)
            self._note_suspended(opened, scope.task)


def current_task() -> weakref.ref[Any] | None:
    """The task of asyncio that is running on this thread, if any."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or asyncio._get_running_loop() is None:
        return None
    task = asyncio.current_task()
    return None if task is None else weakref.ref(task)


def mark_interleaved(trace: Trace, scopes: Sequence[OpenScope]) -> Bool:
    """`is_async` of `trace`, and True for the events of these scopes: nothing counts as nested in them."""
    if not scopes:
        return trace.is_async
    is_async, is_scope = trace.is_async.copy(), trace.kind == SCOPE
    position = {name: index for index, name in enumerate(trace.names)}
    rows = {
        name: np.flatnonzero(is_scope & (trace.name == position.get(name, -1)))
        for name in {scope.name for scope in scopes}
    }
    starts = {name: trace.start_ns[of_name] for name, of_name in rows.items()}
    for scope in scopes:
        since, until = scope.entering_ns, scope.entered_ns
        left, right = np.searchsorted(starts[scope.name], [since - _TOLERANCE_NS, until + _TOLERANCE_NS + 1]).tolist()
        within = rows[scope.name][left:right]
        within = within[~is_async[within]]
        if len(within):
            start_ns = trace.start_ns[within]
            is_async[within[np.argmin(np.maximum(since - start_ns, start_ns - until).clip(0))]] = True
    return is_async
