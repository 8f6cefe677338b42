"""JSON by msgspec: typed structs, several times as fast as `json`, and without an object for what nobody asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from mtprof_nb.reading.text.event_records import IGNORED_KEYS, KEYS, TEXTS, Event, Facts

_NOTHING = msgspec.Raw()


class _Event(msgspec.Struct, gc=False):
    ph: Any = ""
    cat: Any = ""
    name: Any = ""
    pid: Any = None
    tid: Any = None
    ts: Any = None
    dur: Any = None
    id: Any = None
    args: msgspec.Raw = _NOTHING


class _EventWithDigits(msgspec.Struct, gc=False):
    ph: Any = ""
    cat: Any = ""
    name: Any = ""
    pid: Any = None
    tid: Any = None
    ts: msgspec.Raw = _NOTHING
    dur: msgspec.Raw = _NOTHING
    id: Any = None
    args: msgspec.Raw = _NOTHING


def _list_of(name: str, keys: Mapping[str, str]) -> Any:
    """The type of a list of structs with the members `keys`. A member that is in no list of keys is an error."""
    known = [
        (fact, *((msgspec.Raw, msgspec.field(name=key, default=_NOTHING)) if fact in TEXTS else _number(key)))
        for fact, key in keys.items()
    ]
    ignored = [
        (f"ignored_{number}", msgspec.Raw, msgspec.field(name=key, default=_NOTHING))
        for number, key in enumerate(IGNORED_KEYS)
    ]
    struct: Any = msgspec.defstruct(name, [*known, *ignored], gc=False, forbid_unknown_fields=True)
    return list[struct]


def _number(key: str) -> tuple[Any, Any]:
    return Any, msgspec.field(name=key, default=None)


class FastDecoder:
    """A `Decoder`."""

    def __init__(self) -> None:
        self._events = msgspec.json.Decoder(list[_Event])
        self._events_with_digits = msgspec.json.Decoder(list[_EventWithDigits])
        self._facts = {kind: msgspec.json.Decoder(_list_of(kind, keys)) for kind, keys in KEYS.items()}
        self._members = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])

    def document(self, text: bytes) -> Any:
        """Any JSON text as Python objects."""
        return msgspec.json.decode(text)

    def events(self, text: bytes, digits: bool) -> Sequence[Event]:
        """The events of the text of a list. With `digits`, times are the bytes that stand there."""
        if not digits:
            return self._events.decode(text)
        events = self._events_with_digits.decode(text)
        for event in events:
            event.ts, event.dur = bytes(event.ts), bytes(event.dur)  # type: ignore[assignment] # the type for decoding
        return events

    def facts(self, args: Sequence[Any], kind: str) -> Sequence[Facts]:
        """The facts `KEYS[kind]` of several events; `ValueError` where one has a member that is not known."""
        found: Sequence[Facts] = self._facts[kind].decode(_listed(args))
        return found

    def members(self, args: Sequence[Any]) -> Sequence[Mapping[str, Any]]:
        """All members of `args` of several events, as JSON texts; `ValueError` where one is no object."""
        return self._members.decode(_listed(args))


def _listed(args: Sequence[Any]) -> bytes:
    """One text for all: a call of the decoder costs as much as decoding a small object does."""
    return b"[%b]" % b",".join([text or b"{}" for text in args])
