"""JSON by the standard library: where msgspec is not installed, and for text that is not quite JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from mtprof_nb.reading.text.event_records import Event, How


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


class PlainDecoder:
    """A `Decoder`."""

    def document(self, text: bytes) -> Any:
        """Any JSON text as Python objects."""
        return json.loads(text)

    def events(self, text: bytes, digits: bool) -> Sequence[Event]:
        """The events of the text of a list. With `digits`, times are the numbers that stand there, exactly."""
        entries = json.loads(text, parse_float=Decimal if digits else None)
        return [PlainEvent(_object(entry)) for entry in entries]

    def columns(self, args: Sequence[Any], members: Mapping[str, How]) -> dict[str, list[Any]]:
        """For each of `members` that is not skipped, its values in the `args` of several events."""
        objects = [_object(one) for one in args]
        if any(not members.keys() >= one.keys() for one in objects):
            msg = "unknown member"
            raise ValueError(msg)
        return {
            key: [_text(one, key) if how is How.RAW else one.get(key, how.value) for one in objects]
            for key, how in members.items()
            if how is not How.SKIPPED
        }

    def keys(self, args: Sequence[Any]) -> Iterable[str]:
        """The keys of all members of the `args` of several events; `ValueError` where `args` is no object."""
        return dict.fromkeys(key for one in args for key in _object(one))

    def members(self, args: Any) -> dict[str, bytes]:
        """The members of the `args` of one event as JSON texts; `ValueError` where it is no object."""
        members = _object(args)
        return {key: _text(members, key) for key in members}


def _object(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        msg = "no object"
        raise ValueError(msg)
    return value


def _text(members: Mapping[str, Any], key: str) -> bytes:
    """The JSON text of a member, b"" where it is missing."""
    return json.dumps(members[key], default=float).encode() if key in members else b""
