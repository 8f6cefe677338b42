"""Events as Kineto gives them, made by hand."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from mtprof_nb.building.autograd_nodes import ForwardThreads
from mtprof_nb.building.recorded_events import RecordedEvents
from mtprof_nb.model.trace import ENGINE_PREFIX as ENGINE
from mtprof_nb.model.trace import OP, SCOPE, Track


class Event:
    """One event with the facts that Kineto has of it, on the CPU unless it says otherwise; 0 for any other fact."""

    def __init__(self, **facts: Any) -> None:
        self.facts = {"device_type": SimpleNamespace(name="CPU"), **facts}

    def __getattr__(self, name: str) -> Any:
        return lambda: self.facts.get(name, 0)


def op(name: str, start: int, end: int, number: int = -1, thread: int = 1) -> Event:
    """An op, and the number that autograd's counter showed as it began."""
    return Event(name=name, start_ns=start, duration_ns=end - start, sequence_nr=number, start_thread_id=thread)


def scope(name: str, start: int, end: int, thread: int = 1) -> Event:
    """A scope of `record_function`."""
    return Event(
        name=name,
        start_ns=start,
        duration_ns=end - start,
        sequence_nr=-1,
        scope=7,
        start_thread_id=thread,
        end_thread_id=thread,
        is_async=False,
    )


def node(name: str, start: int, end: int, number: int, made_on: int = 1, thread: int = 1) -> list[Event]:
    """An autograd node of thread `made_on`: the engine's event around it, and its own."""
    facts = {"sequence_nr": number, "start_thread_id": thread, "fwd_thread_id": made_on}
    return [
        Event(name=ENGINE + name, start_ns=start, duration_ns=end - start, **facts),
        Event(name=name, start_ns=start + 1, duration_ns=end - start - 2, scope=1, **facts),
    ]


def recorded(*events: Event | list[Event]) -> RecordedEvents:
    """These events as a recorder or a file has them."""
    flat = [event for part in events for event in (part if isinstance(part, list) else [part])]
    flat.sort(key=lambda event: (event.start_ns(), -event.duration_ns()))
    names = list(dict.fromkeys(event.name() for event in flat))
    numbers = sorted({event.start_thread_id() for event in flat})
    return RecordedEvents(
        name=np.array([names.index(event.name()) for event in flat], np.int32),
        names=tuple(names),
        kind=np.array([SCOPE if event.scope() == 7 else OP for event in flat], np.int8),
        start_ns=np.array([event.start_ns() for event in flat]),
        duration_ns=np.array([event.duration_ns() for event in flat]),
        thread=np.array([numbers.index(event.start_thread_id()) for event in flat], np.int32),
        threads=tuple(Track(0, "x", number=number) for number in numbers),
        sequence_nr=np.array([event.sequence_nr() for event in flat]),
        is_backward_node=np.array([event.scope() == 1 for event in flat]),
        is_async=np.zeros(len(flat), np.bool_),
    )


def made_on(*events: Event | list[Event]) -> ForwardThreads:
    """The threads on which the nodes of these events were made."""
    flat = [event for part in events for event in (part if isinstance(part, list) else [part])]
    flat.sort(key=lambda event: (event.start_ns(), -event.duration_ns()))
    return lambda rows: np.array([flat[row].fwd_thread_id() for row in rows.tolist()], np.int64)
