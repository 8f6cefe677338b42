"""Events as Kineto gives them, made by hand, and how they are read."""

from types import SimpleNamespace
from typing import Any

from mtprof_nb.capture.kineto.kineto_events import KinetoColumns, read_columns
from mtprof_nb.model.trace import ENGINE_PREFIX as ENGINE


class Event:
    """One event with the facts that Kineto has of it, on the CPU unless it says otherwise; 0 for any other fact."""

    def __init__(self, **facts: Any) -> None:
        self.facts = {"device_type": SimpleNamespace(name="CPU"), **facts}

    def __getattr__(self, name: str) -> Any:
        return lambda: self.facts.get(name, 0)


class EventType:
    """Unbound accessors, as the class of Kineto's events has them."""

    def __getattr__(self, name: str) -> Any:
        return lambda event: getattr(event, name)()


ACCESSORS = EventType()


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


def columns_of(*events: Event | list[Event]) -> KinetoColumns:
    """The columns of these events."""
    flat = [event for part in events for event in (part if isinstance(part, list) else [part])]
    return read_columns(SimpleNamespace(events=lambda: flat), ACCESSORS, with_python=False, thread_names={0: "x"})
