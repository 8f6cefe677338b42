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
#: Members that are no facts: their places are behind those of facts.
_LAST = (How.PLAIN, How.SKIPPED)
#: A double in msgpack.
_DOUBLE, _IS_DOUBLE = np.dtype([("type", np.uint8), ("value", ">f8")]), 0xCB
_TO_MSGPACK = msgspec.msgpack.Encoder()
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
        batches = []
        for kind in (True, False):
            rows = np.flatnonzero(has_category == kind)
            if len(rows):
                own = b"[%b]" % b",".join([texts[row] for row in rows.tolist()])
                batches += self._types(wanted, has_category=kind).batches(own, rows)
        return batches

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
        self._categories = [
            _Category(category, known, wanted.digits, is_counted=category in wanted.counted)
            for category, known in members.items()
        ]
        types = [one.type for one in self._categories]
        if len(types) == 1 and None not in members:
            # Where only one category is known, msgspec takes an event without any for one of it; of two, it does not.
            types.append(_counted_type(f"{self._categories[0].category} or another"))
        self._number_of = {one: number for number, one in enumerate(types)}
        self._decoder = msgspec.json.Decoder(list[Union[tuple(types)]])  # type: ignore[misc] # noqa: UP007 - types at runtime

    def batches(self, text: bytes, rows: Int64 | None = None) -> list[Batch]:
        """The events; `rows` has their positions where these are not all."""
        events = self._decoder.decode(text)
        types = list(map(type, events))
        if len(kinds := set(types)) == 1:
            all_rows = np.arange(len(events)) if rows is None else rows
            return [self._batch(self._number_of[kinds.pop()], all_rows, events)]
        number = np.fromiter(map(self._number_of.__getitem__, types), np.int16, len(events))
        order = np.argsort(number, kind="stable")
        events = itemgetter(*order.tolist())(events)
        order = order if rows is None else rows[order]
        batches, end = [], 0
        for one, count in enumerate(np.bincount(number).tolist()):
            begin, end = end, end + count
            if count:
                batches.append(self._batch(one, order[begin:end], events[begin:end]))
        return batches

    def _batch(self, number: int, rows: Int64, events: Sequence[Any]) -> Batch:
        if number == len(self._categories):
            msg = "an event of an unknown category"
            raise ValueError(msg)
        return self._categories[number].batch(rows, events)


class _Category:
    """Makes batches of the events of a category. Facts have the first places in `args`, plain values the next."""

    def __init__(self, category: str | None, known: _Members, digits: bool, *, is_counted: bool) -> None:
        known = tuple(sorted(known, key=_order))
        self.category = category
        self.type = _counted_type(category) if is_counted else _event_type(category, known, digits)
        self._is_counted = is_counted
        self._digits = digits
        facts = [(key, _is_raw(how, is_plain), how.empty) for key, how, is_plain in known if how not in _LAST]
        self._facts = [(key, is_raw, _NOTHING if is_raw else empty) for key, is_raw, empty in facts]
        self._plain_keys = tuple(key for key, how, _ in known if how is How.PLAIN)
        self._are_raw = [_is_raw(how, is_plain) for _, how, is_plain in known if how is How.PLAIN]
        self._plain_of = itemgetter(slice(len(self._facts), len(self._facts) + len(self._plain_keys)))

    def batch(self, rows: Int64, events: Sequence[Any]) -> Batch:
        if self._is_counted:
            return Batch(self.category, rows, {}, {})
        *columns, args = zip(*map(astuple, events), strict=True)
        members = dict(zip(MEMBERS, columns, strict=True))
        if self._digits:
            members["ts"] = tuple(map(bytes, members["ts"]))
        else:
            members["ts"], members["dur"] = _doubles(members["ts"]), _doubles(members["dur"])
        if not self._facts and not self._plain_keys:
            return Batch(self.category, rows, members, {})
        values = list(map(astuple, args))
        value_columns = zip(*values, strict=True)
        facts = dict(self._columns(value_columns))
        return Batch(self.category, rows, members, facts, self._plain_keys, self._plain(values, value_columns))

    def _columns(self, columns: Iterator[tuple[Any, ...]]) -> Iterator[tuple[str, Sequence[Any]]]:
        """The columns of facts that some event has; takes the columns of all facts from `columns`."""
        for (key, is_raw, empty), column in zip(self._facts, columns, strict=False):
            if column[0] != empty or column.count(empty) < len(column):
                yield key, list(map(bytes, column)) if is_raw else column

    def _plain(self, rows: Sequence[Any], columns: Iterator[tuple[Any, ...]]) -> Sequence[tuple[Any, ...]]:
        """For each event its plain values, from `rows`, or where some are JSON texts from the next `columns`."""
        if not self._plain_keys:
            return ()
        if True not in self._are_raw:
            return list(map(self._plain_of, rows))
        pairs = zip(self._are_raw, columns, strict=False)
        return list(zip(*(map(bytes, column) if is_raw else column for is_raw, column in pairs), strict=True))


def _events_before(error: msgspec.ValidationError) -> int:
    """How many events of a list are valid before the first that is not."""
    place = _PLACE.search(str(error))
    return int(place[1]) if place else 0


def _doubles(values: Sequence[Any]) -> Any:
    """An array of the values if all of them are doubles; else the values."""
    count = len(values)
    if type(values[0]) is not float:
        return values
    try:
        # In msgpack, each double has nine bytes. The first of them is its type.
        header = 1 if count < 1 << 4 else 3 if count < 1 << 16 else 5
        decoded = np.frombuffer(_TO_MSGPACK.encode(values), _DOUBLE, count, header)
    except (OverflowError, ValueError):
        return values
    return decoded["value"].astype(np.float64) if (decoded["type"] == _IS_DOUBLE).all() else values


def _order(member: tuple[str, How, bool]) -> int:
    """Facts come first, then plain values, then what is skipped."""
    return _LAST.index(member[1]) if member[1] in _LAST else -1


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
