"""JSON by the standard library: where msgspec is not installed, and for text that is not quite JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from mtprof_nb.reading.text.event_records import IGNORED_KEYS, KEYS, TEXTS, Event, Facts


class PlainEvent:
    """One entry of `traceEvents`, from a dict."""

    __slots__ = ("args", "cat", "dur", "id", "name", "ph", "pid", "tid", "ts")

    def __init__(self, members: Mapping[str, Any]) -> None:
        self.ph: Any = members.get("ph", "")
        self.cat: Any = members.get("cat", "")
        self.name: Any = members.get("name", "")
        self.pid: Any = members.get("pid")
        self.tid: Any = members.get("tid")
        self.ts: Any = members.get("ts")
        self.dur: Any = members.get("dur")
        self.id: Any = members.get("id")
        self.args: Any = members.get("args")


class _PlainFacts:
    def __init__(self, values: Mapping[str, Any]) -> None:
        self.__dict__.update(values)


class PlainDecoder:
    """A `Decoder`."""

    def document(self, text: bytes) -> Any:
        """Any JSON text as Python objects."""
        return json.loads(text)

    def events(self, text: bytes, digits: bool) -> Sequence[Event]:
        """The events of the text of a list. With `digits`, times are the numbers that stand there, exactly."""
        return plain_events(json.loads(text, parse_float=Decimal if digits else None))

    def facts(self, args: Sequence[Any], kind: str) -> Sequence[Facts]:
        """The facts `KEYS[kind]` of several events; `ValueError` where one has a member that is not known."""
        keys = KEYS[kind]
        known = {*keys.values(), *IGNORED_KEYS}
        if any(not known.issuperset(one) for one in map(_members, args)):
            msg = "unknown member"
            raise ValueError(msg)
        return [
            _PlainFacts({fact: _fact(fact, one.get(key)) for fact, key in keys.items()}) for one in map(_members, args)
        ]

    def members(self, args: Sequence[Any]) -> Sequence[Mapping[str, Any]]:
        """All members of `args` of several events, as JSON texts; `ValueError` where one is no object."""
        return [{key: as_text(value) for key, value in _members(one).items()} for one in args]


def plain_events(entries: Iterable[Any]) -> list[Event]:
    """Events from dicts; `ValueError` where an entry is none."""
    events: list[Event] = []
    for entry in entries:
        if not isinstance(entry, dict):
            msg = "an entry of the list is no object"
            raise ValueError(msg)
        events.append(PlainEvent(entry))
    return events


def as_text(value: Any) -> bytes:
    """JSON text of a value."""
    return json.dumps(value, default=float).encode()


def _members(args: Any) -> dict[str, Any]:
    if args is None:
        return {}
    if not isinstance(args, dict):
        msg = "args is no object"
        raise ValueError(msg)
    return args


def _fact(fact: str, value: Any) -> Any:
    if fact not in TEXTS:
        return value
    return b"" if value is None else as_text(value)
