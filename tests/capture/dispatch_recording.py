"""Recordings with hook `dispatch`, and how to find an op in them."""

from collections.abc import Callable
from typing import Any

from mtprof_nb.capture.dispatch.dispatch_hook import DispatchHook
from mtprof_nb.capture.hook import Request
from mtprof_nb.model.trace import KINDS, PHASES, Recorded, Trace


def new_hook(max_events: int = 100_000, activities: frozenset[str] = frozenset({"CPU"}), **flags: bool) -> DispatchHook:
    return DispatchHook(Request(activities=activities, recorded=Recorded(**flags), max_events=max_events))


def record(program: Callable[[], Any], **flags: bool) -> Trace:
    hook = new_hook(**flags)
    hook.prepare()
    hook.start()
    try:
        program()
    finally:
        trace = hook.stop()
    return trace


def names_of(trace: Trace, kind: str = "op") -> list[str]:
    return [trace.names[name] for name in trace.name[trace.kind == KINDS.index(kind)]]


def row_of(trace: Trace, name: str, phase: str = "forward") -> int:
    matches = [
        row for row in range(len(trace)) if trace.names[trace.name[row]] == name and PHASES[trace.phase[row]] == phase
    ]
    return matches[0]
