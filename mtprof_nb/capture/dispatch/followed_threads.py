"""Records other threads beside Kineto where it records only its own thread, as with `profile_memory`."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from mtprof_nb.capture.dispatch.dispatch_hook import DispatchHook
from mtprof_nb.capture.hook import Hook, Request
from mtprof_nb.capture.kineto.kineto_hook import KinetoHook
from mtprof_nb.errors import warn
from mtprof_nb.model.trace import Trace, empty_trace


class FollowedThreadsHook(Hook):
    """Hook `dispatch` on threads that start meanwhile, and on pools that get work meanwhile.

    It does nothing where Kineto records all threads itself.
    """

    def __init__(self, request: Request, kineto: KinetoHook) -> None:
        self._request = request
        self._kineto = kineto
        self._hook: DispatchHook | None = None

    def start(self) -> None:
        if not self._kineto.threads.are_all:
            self._hook = DispatchHook(self._request, only_others=True)
            self._hook.start()

    def remove(self) -> None:
        """Follow no more; what was recorded stays until `stop`."""
        if self._hook is not None:
            self._hook.remove()

    def stop(self) -> Trace:
        """The ops of other threads. Does no harm after a failed start."""
        if self._hook is None:
            return empty_trace(recorded=self._request.recorded)
        trace = self._hook.stop()
        self._hook = None
        if not getattr(self._request.experimental_config, "capture_overload_names", False):
            # Kineto records overloads only on request, and an op must not have two names in one recording.
            trace = replace(trace, overload=None, overloads=())
        if len(trace):
            without = " and without their memory" if self._request.recorded.profile_memory else ""
            warn(
                f"ops of other threads are recorded as by hook 'dispatch', without composite ops{without}: here Kineto "
                "records only the thread that profiles"
            )
        return trace

    def abandon(self) -> None:
        if self._hook is not None:
            self._hook.abandon()

    def scope(self, name: str, args: str | None = None) -> AbstractContextManager[Any]:  # noqa: ARG002 - as every hook
        """A scope that does nothing: Kineto's scope is torch's own, which the mode records on these threads."""
        return nullcontext()

    def toggle(self, enable: bool, activities: frozenset[str]) -> None:
        if self._hook is not None:
            self._hook.toggle(enable, activities)
