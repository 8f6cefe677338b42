"""The runtime's own profiler: a list of events, behind the points that a dispatcher calls."""

import time
from dataclasses import dataclass, field
from typing import Any

_ACTIVE_SESSION = None


@dataclass
class _Event:
    name: str
    start_ns: int
    end_ns: int
    metadata: Any = None


@dataclass
class _Session:
    events: list = field(default_factory=list)

    def append_event(self, event):
        self.events.append(event)


def is_profiler_enabled():
    return _ACTIVE_SESSION is not None


def dispatch_op_enter(name, dispatch_device, args, kwargs):
    session = _ACTIVE_SESSION
    if session is None:
        return None
    return (session, name, str(dispatch_device), time.perf_counter_ns(), 0, 0, {"inputs": len(args) + len(kwargs)})


def dispatch_op_exit(token):
    if token is None:
        return
    session, name, _, start, _, _, metadata = token
    session.append_event(_Event(name, start, time.perf_counter_ns(), metadata))


class _RecordFunction:
    def __init__(self, name):
        self.name = name
        self.start = 0

    def __enter__(self):
        self.start = time.perf_counter_ns()
        return self

    def __exit__(self, exc_type, exc, tb):
        if _ACTIVE_SESSION is not None:
            _ACTIVE_SESSION.append_event(_Event(self.name, self.start, time.perf_counter_ns()))
        return False


def record_function(name):
    return _RecordFunction(name)


class profile:
    def __init__(self):
        self.session = _Session()

    def __enter__(self):
        global _ACTIVE_SESSION
        _ACTIVE_SESSION = self.session
        return self

    def __exit__(self, *exception):
        global _ACTIVE_SESSION
        _ACTIVE_SESSION = None

    def names(self):
        return [event.name for event in self.session.events]
