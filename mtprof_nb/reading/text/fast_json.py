"""JSON by msgspec: typed structs, several times as fast as `json`, and without an object for what nobody asks for.

Events of one category have the same few members of `args`, and a struct type that has these members only. The decoder
starts without any type. When it meets a category or a member that is new, it learns them, and decodes again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, Union

import msgspec
import numpy as np
from msgspec.structs import astuple

from mtprof_nb.model.schema import Int64
from mtprof_nb.reading.text.event_records import MEMBERS, Batch, How, HowOf, Wanted
from mtprof_nb.reading.text.plain_json import MOST_MEMBERS

_NOTHING = msgspec.Raw()
_MOST_CATEGORIES = 100
#: The place of an error, which ends its message.
_PLACE = re.compile(r"at `\$\[(\d+)\][^`]*`$")
#: Beginnings of JSON texts that are neither numbers nor texts.
_NESTED = (b"[", b"{")
#: Members of `args`, how they are decoded, and whether they are numbers or texts.
_Members = tuple[tuple[str, How, bool], ...]


class _Outline(msgspec.Struct, gc=False):
    cat: Any = None
    args: msgspec.Raw = _NOTHING


class FastDecoder:
    """A `Decoder`."""

    def __init__(self) -> None:
        #: For each category, and None, the members of `args` that are known so far.
        self._members: dict[str | None, dict[str, tuple[str, How, bool]]] = {}
        self._outlines = msgspec.json.Decoder(list[_Outline])
        self._texts = msgspec.json.Decoder(list[msgspec.Raw])
        self._args = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])
        self._typed: dict[tuple[Wanted, bool], _Typed] = {}

    def document(self, text: bytes) -> Any:
        """Any JSON text as Python objects."""
        return msgspec.json.decode(text)

    def batches(self, text: bytes, how: HowOf, wanted: Wanted) -> list[Batch]:
        """The events of the text of a list. With `digits`, the times `ts` are the bytes that stand there."""
        known = 0
        if self._members.keys() - {None}:
            try:
                return self._types(wanted, has_category=True).batches(text)
            except msgspec.ValidationError as error:
                known = _events_before(error)
        outlines = self._outlines.decode(text)
        self._learn(outlines[known:], how)
        has_category = np.array([outline.cat is not None for outline in outlines], np.bool_)
        if has_category.all():
            return self._types(wanted, has_category=True).batches(text)
        if not has_category.any():
            return self._types(wanted, has_category=False).batches(text)
        texts = self._texts.decode(text)
        found = []
        for kind in (True, False):
            rows = np.flatnonzero(has_category == kind)
            if len(rows):
                own = b"[%b]" % b",".join([texts[row] for row in rows.tolist()])
                found += self._types(wanted, has_category=kind).batches(own, rows)
        return found

    def _types(self, wanted: Wanted, *, has_category: bool) -> _Typed:
        key = wanted, has_category
        if key not in self._typed:
            known = {one: members for one, members in self._members.items() if (one is not None) == has_category}
            self._typed[key] = _Typed({one: tuple(members.values()) for one, members in known.items()}, wanted)
        return self._typed[key]

    def _learn(self, outlines: Iterable[_Outline], how: HowOf) -> None:
        """Add categories and members; `ValueError` if there are too many, or a category is no text."""
        args: dict[Any, list[msgspec.Raw | bytes]] = {}
        for outline in outlines:
            if not isinstance(outline.cat, str | None):
                msg = "a category is no text"
                raise ValueError(msg)
            args.setdefault(outline.cat, []).append(outline.args or b"{}")
        for category, texts in args.items():
            known = self._members.setdefault(category, {})
            for members in self._args.decode(b"[%b]" % b",".join(texts)):
                if known.keys() >= members.keys():
                    continue
                known |= {
                    key: (key, how(category, key), bytes(value)[:1] not in _NESTED)
                    for key, value in members.items()
                    if key not in known
                }
            if len(known) > MOST_MEMBERS or len(self._members) > _MOST_CATEGORIES:
                msg = "too many members"
                raise ValueError(msg)
        self._typed.clear()


class _Typed:
    """Decodes events of known categories with known members."""

    def __init__(self, members: dict[str | None, _Members], wanted: Wanted) -> None:
        self._wanted = wanted
        self._categories = list(members.items())
        types = [
            _counted_type(category) if category in wanted.counted else _event_type(category, known, wanted.digits)
            for category, known in self._categories
        ]
        if len(types) == 1 and None not in members:
            # Where only one category is known, msgspec takes an event without any for one of it; of two, it does not.
            types.append(_counted_type(f"{self._categories[0][0]} or another"))
        self._number_of = {one: number for number, one in enumerate(types)}
        self._decoder = msgspec.json.Decoder(list[Union[tuple(types)]])  # type: ignore[misc] # noqa: UP007 - types at runtime

    def batches(self, text: bytes, rows: Int64 | None = None) -> list[Batch]:
        """The events; `rows` has their positions where these are not all."""
        events = self._decoder.decode(text)
        if len(kinds := set(map(type, events))) == 1:
            all_rows = np.arange(len(events)) if rows is None else rows
            return [self._batch(self._number_of[kinds.pop()], all_rows, events)]
        number = np.fromiter(map(self._number_of.__getitem__, map(type, events)), np.int16, len(events))
        found = []
        for one in np.flatnonzero(np.bincount(number)).tolist():
            here = np.flatnonzero(number == one)
            chosen = itemgetter(*here.tolist())(events) if len(here) > 1 else (events[here[0]],)
            found.append(self._batch(one, here if rows is None else rows[here], chosen))
        return found

    def _batch(self, number: int, rows: Int64, events: Sequence[Any]) -> Batch:
        if number == len(self._categories):
            msg = "a category that stands for no other"
            raise ValueError(msg)
        category, known = self._categories[number]
        if category in self._wanted.counted:
            return Batch(category, rows, {}, {})
        *columns, args = zip(*map(astuple, events), strict=True)
        members = dict(zip(MEMBERS, columns, strict=True))
        if self._wanted.digits:
            members["ts"] = tuple(map(bytes, members["ts"]))
        return Batch(category, rows, members, dict(_columns(known, args)))


def _events_before(error: msgspec.ValidationError) -> int:
    """How many events of a list are valid before the first that is not."""
    found = _PLACE.search(str(error))
    return int(found[1]) if found else 0


def _columns(known: _Members, args: Sequence[Any]) -> Iterator[tuple[str, Sequence[Any]]]:
    """The columns of members that some event has."""
    if not known:
        return
    for (key, how, is_plain), column in zip(known, zip(*map(astuple, args), strict=True), strict=True):
        is_raw = _is_raw(how, is_plain)
        empty = _NOTHING if is_raw else how.empty
        if how is How.SKIPPED or (column[0] == empty and column.count(empty) == len(column)):
            continue
        yield key, list(map(bytes, column)) if is_raw else column


def _is_raw(how: How, is_plain: bool) -> bool:
    return how is How.RAW or (how in (How.PLAIN, How.SKIPPED) and not is_plain)


@lru_cache(maxsize=256)
def _event_type(category: str | None, known: _Members, digits: bool) -> Any:
    """The struct of events of a category; an unknown member of `args` is an error."""
    fields = [
        (f"member_{number}", msgspec.Raw, msgspec.field(name=key, default=_NOTHING))
        if _is_raw(how, is_plain)
        else (f"member_{number}", Any, msgspec.field(name=key, default=how.empty))
        for number, (key, how, is_plain) in enumerate(known)
    ]
    args = msgspec.defstruct("Args", fields, gc=False, frozen=True, forbid_unknown_fields=True)
    members: list[Any] = [
        (key, msgspec.Raw, _NOTHING) if digits and key == "ts" else (key, Any, empty) for key, empty in MEMBERS.items()
    ]
    return msgspec.defstruct("Event", [*members, ("args", args, args())], gc=False, **_tag(category))


def _counted_type(category: str | None) -> Any:
    """The struct of events that are only counted."""
    return msgspec.defstruct("Counted", [], gc=False, **_tag(category))


def _tag(category: str | None) -> dict[str, Any]:
    return {} if category is None else {"tag_field": "cat", "tag": category}
