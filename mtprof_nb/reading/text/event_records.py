"""Events of a Chrome trace as columns, as they stand in the file. A value may have any type: files are untrusted."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.util import find_spec
from math import isfinite
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

import numpy as np

from mtprof_nb.model.schema import Int64

#: Members of an event that are read, with their values where they are missing. `cat` and `args` are read beside them.
MEMBERS: Mapping[str, Any] = {"ph": "", "name": "", "pid": None, "tid": None, "ts": None, "dur": None, "id": None}


class How(Enum):
    """How a member of `args` is decoded, and its value where it is missing."""

    NUMBER = "a number", -1
    TEXT = "a text", ""
    #: Bytes with the JSON text.
    RAW = "JSON", b""
    #: A number or a text, or bytes with the JSON text of anything else.
    PLAIN = "a plain value", b""
    SKIPPED = "skipped", None

    @property
    def empty(self) -> Any:
        """The value of a member that is missing."""
        return self.value[1]


#: How a member of `args` is decoded, by the category of its events and its key.
HowOf = Callable[[Any, str], How]


class Wanted(NamedTuple):
    """Requests of whoever reads the events, which may change while a file is read."""

    #: Whether the times `ts` are to keep all digits that stand there.
    digits: bool = False
    #: Categories whose events need only be counted.
    counted: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Batch:
    """Events of one category."""

    #: None for events without a category.
    category: Any
    #: Their positions among all events that were decoded together.
    rows: Int64
    #: A column for each of `MEMBERS`, an array where all its values are doubles; none where events are only counted.
    members: Mapping[str, Any]
    #: A column for each member of `args` that some event has, except plain and skipped ones.
    args: Mapping[str, Sequence[Any]]
    #: Keys of members of `args` that are plain values, and for each event a tuple of these values.
    plain_keys: tuple[str, ...] = ()
    plain: Sequence[tuple[Any, ...]] = ()
    #: For each event further members of `args`, as plain values, where there are too many keys.
    others: Sequence[Mapping[str, Any]] = ()
    #: How many events have `args` that are no object.
    bad: int = 0

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, chosen: Sequence[int]) -> Batch:
        """The events at these positions of the batch."""
        if not chosen:
            return Batch(self.category, self.rows[:0], dict.fromkeys(self.members, ()), {})
        pick = itemgetter(*chosen) if len(chosen) > 1 else lambda column: (column[chosen[0]],)
        members = {
            key: column[list(chosen)] if isinstance(column, np.ndarray) else pick(column)
            for key, column in self.members.items()
        }
        args = {key: pick(column) for key, column in self.args.items()}
        plain, others = (pick(rows) if rows else () for rows in (self.plain, self.others))
        return Batch(self.category, self.rows[list(chosen)], members, args, self.plain_keys, plain, others)

    def column(self, key: str) -> Sequence[Any] | None:
        """The values of a member of `args`; None if no event has it."""
        if key not in self.plain_keys:
            return self.args.get(key)
        place = self.plain_keys.index(key)
        values = [row[place] for row in self.plain]
        return values if any(value != b"" for value in values) else None

    def args_of(self, position: int) -> dict[str, Any]:
        """The members of `args` of one event that are plain values or JSON texts."""
        args = {key: column[position] for key, column in self.args.items() if column[position] != b""}
        if self.plain:
            plain = zip(self.plain_keys, self.plain[position], strict=True)
            args |= {key: value for key, value in plain if value != b""}
        return args | dict(self.others[position]) if self.others else args


def json_text(value: Any) -> str:
    """The JSON text of a plain value, or of bytes that hold one."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    # Most values are such numbers, for which the encoder takes ten times as long.
    if type(value) is int or (type(value) is float and isfinite(value)):
        return repr(value)
    return json.dumps(value, default=float)


@cache
def json_decoder() -> Callable[[bytes], Any]:
    """The function of msgspec where it is installed, else `json.loads`; `ValueError` for a text that is no JSON."""
    if find_spec("msgspec") is None:
        return json.loads
    import msgspec

    return msgspec.json.decode


def parsed(text: bytes) -> Any:
    """The value of a small JSON text inside a file; None for a text that is no JSON."""
    try:
        return json_decoder()(text) if text else None
    except (ValueError, RecursionError):
        return None


class Decoder(Protocol):
    """Decodes events; `ValueError` where it cannot."""

    def batches(self, text: bytes, how: HowOf, wanted: Wanted) -> list[Batch]:
        """The events of the text of a list."""
        ...
