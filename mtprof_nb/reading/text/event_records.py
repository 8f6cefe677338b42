"""Records of a Chrome trace as they stand in the file. A member may have any type: files are somebody else's text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Protocol


class Event(Protocol):
    """An entry of `traceEvents`; None or "" for a member that it lacks."""

    ph: Any
    cat: Any
    name: Any
    pid: Any
    tid: Any
    ts: Any
    dur: Any
    id: Any
    args: Any


class How(Enum):
    """How a member of `args` is decoded: as a value, -1 or "" where it is missing; as JSON text; or not at all."""

    NUMBER = -1
    TEXT = ""
    RAW = b""
    SKIPPED = None


class Decoder(Protocol):
    """Decodes JSON; `ValueError` where it cannot."""

    def document(self, text: bytes) -> Any:
        """Any JSON text as Python objects."""
        ...

    def events(self, text: bytes, digits: bool) -> Sequence[Event]:
        """The events of the text of a list. With `digits`, times are the bytes that stand there."""
        ...

    def columns(self, args: Sequence[Any], members: Mapping[str, How]) -> dict[str, list[Any]]:
        """For each of `members` that is not skipped, its values in the `args` of several events.

        `ValueError` where an event has another member, or `args` is no object.
        """
        ...

    def keys(self, args: Sequence[Any]) -> Iterable[str]:
        """The keys of all members of the `args` of several events; `ValueError` where `args` is no object."""
        ...

    def members(self, args: Any) -> dict[str, bytes]:
        """The members of the `args` of one event as JSON texts; `ValueError` where it is no object."""
        ...
