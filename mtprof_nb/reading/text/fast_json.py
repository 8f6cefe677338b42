"""JSON by msgspec: typed structs, several times as fast as `json`, and without an object for what nobody asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from mtprof_nb.reading.text.event_records import Event, How

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


class FastDecoder:
    """A `Decoder`."""

    def __init__(self) -> None:
        self._events = msgspec.json.Decoder(list[_Event])
        self._events_with_digits = msgspec.json.Decoder(list[_EventWithDigits])
        self._members = msgspec.json.Decoder(dict[str, msgspec.Raw])
        self._keys = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])
        self._columns: dict[tuple[tuple[str, How], ...], Any] = {}

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

    def columns(self, args: Sequence[Any], members: Mapping[str, How]) -> dict[str, list[Any]]:
        """For each of `members` that is not skipped, its values in the `args` of several events."""
        kinds = tuple(members.items())
        if kinds not in self._columns:
            self._columns[kinds] = msgspec.json.Decoder(_list_of(members))
        records = self._columns[kinds].decode(_listed(args))
        found: dict[str, list[Any]] = {}
        for number, (key, how) in enumerate(kinds):
            if how is not How.SKIPPED:
                values = map(attrgetter(f"member_{number}"), records)
                found[key] = list(map(bytes, values)) if how is How.RAW else list(values)
        return found

    def keys(self, args: Sequence[Any]) -> Iterable[str]:
        """The keys of all members of the `args` of several events; `ValueError` where `args` is no object."""
        return dict.fromkeys(key for members in self._keys.decode(_listed(args)) for key in members)

    def members(self, args: Any) -> dict[str, bytes]:
        """The members of the `args` of one event as JSON texts; `ValueError` where it is no object."""
        return {key: bytes(value) for key, value in self._members.decode(args or b"{}").items()}


def _list_of(members: Mapping[str, How]) -> Any:
    """The type of a list of structs with these members; another one is an error."""
    is_raw = {How.RAW, How.SKIPPED}
    fields = [
        (f"member_{number}", msgspec.Raw, msgspec.field(name=key, default=_NOTHING))
        if how in is_raw
        else (f"member_{number}", Any, msgspec.field(name=key, default=how.value))
        for number, (key, how) in enumerate(members.items())
    ]
    struct: Any = msgspec.defstruct("Members", fields, gc=False, forbid_unknown_fields=True)
    return list[struct]


def _listed(args: Sequence[Any]) -> bytes:
    """One text for all: a call of the decoder costs as much as decoding a small object does."""
    return b"[%b]" % b",".join([text or b"{}" for text in args])
