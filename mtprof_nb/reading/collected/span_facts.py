"""Facts of spans, from the `args` of their events, as columns."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mtprof_nb.model.schema import Columns
from mtprof_nb.reading.collected.tables import Table, numbers
from mtprof_nb.reading.text.event_records import IGNORED_KEYS, KEYS, TEXTS, Decoder, Facts

_INPUTS = ("dims", "types", "strides")
#: Facts by their key in the file, for events of any kind.
_KNOWN = {
    **{key: fact for keys in KEYS.values() for fact, key in keys.items()},
    "external id": "external",
    "Input dims": "dims",
    "connection_id": "connection",
    "device": "device",
    "stream": "stream",
}
#: Keys that mean something else where an op or a scope has them: then they are keywords of the user.
_OF_DEVICES = frozenset({"device", "stream", "correlation", "cbid", "connection_id"})
_MEMORY = re.compile(r"\w+_memory_allocated_(before|after|delta)")
_NOT_KNOWN = frozenset({"cbid"})


class FactReader:
    """Reads `args`. Texts are kept once, in tables: `texts[fact]`."""

    def __init__(self) -> None:
        #: For each fact that is a text, the texts; `inputs` has triples of dims, types and strides.
        self.texts: dict[str, Table] = {}
        #: JSON objects with all members that are no fact.
        self.rests = Table()
        #: How many events have `args` that are no object.
        self.bad = 0

    def read(self, decoder: Decoder, args: Sequence[Any], kind: str, text: bytes) -> Columns:
        """Columns for events of one kind: one of `KEYS`, "host" for other events of the host, "" for all others.

        `text` is the text of the events, b"" where it is not known.
        """
        if kind in KEYS:
            try:
                return self._of_facts(decoder.facts(args, kind), kind, text)
            except ValueError:
                pass
        known = {
            key: fact for key, fact in _KNOWN.items() if kind not in ("op", "host", "python") or key not in _OF_DEVICES
        }
        return self._of_members(self.members(decoder, args), known)

    def _of_facts(self, records: Sequence[Facts], kind: str, text: bytes) -> Columns:
        keys = KEYS[kind]
        there = [fact for fact, key in keys.items() if not text or f'"{key}"'.encode() in text]
        found: Columns = {}
        for fact in there:
            if fact not in TEXTS:
                found[fact] = numbers([getattr(record, fact) for record in records])
            elif fact not in _INPUTS:
                found[fact] = self._table(fact).positions_of_texts([bytes(getattr(record, fact)) for record in records])
        if "dims" in there:
            triples = [(bytes(one.dims), bytes(one.types), bytes(one.strides)) for one in records]
            found["shape"] = self._shapes(triples)
        if "cbid" in found:
            found["rest"] = self._rests(
                {"cbid": str(number)} if number >= 0 else {} for number in found.pop("cbid").tolist()
            )
        return found

    def _of_members(self, members: Sequence[Mapping[str, Any]], known: Mapping[str, str]) -> Columns:
        rows: dict[str, list[int]] = {}
        texts: dict[str, list[bytes]] = {}
        rests: list[dict[str, str]] = []
        for row, one in enumerate(members):
            rest: dict[str, str] = {}
            for key, value in one.items():
                fact = known.get(key) or _memory_fact(key)
                if fact is None or fact == "cbid":
                    if key not in IGNORED_KEYS:
                        rest[key] = bytes(value).decode("utf-8", "replace")
                elif fact:
                    rows.setdefault(fact, []).append(row)
                    texts.setdefault(fact, []).append(bytes(value))
            rests.append(rest)
        found: Columns = {}
        triples: dict[str, list[bytes]] = {}
        for fact, places in rows.items():
            if fact in _INPUTS:
                triples[fact] = _spread(places, texts[fact], len(members))
            elif fact in TEXTS:
                found[fact] = _placed(places, self._table(fact).positions_of_texts(texts[fact]), len(members))
            else:
                found[fact] = _placed(places, numbers(map(_value, texts[fact])), len(members))
        if triples:
            nothing = [b""] * len(members)
            found["shape"] = self._shapes(list(zip(*(triples.get(one, nothing) for one in _INPUTS), strict=True)))
        if any(rests):
            found["rest"] = self._rests(rests)
        return found

    def members(self, decoder: Decoder, args: Sequence[Any]) -> Sequence[Mapping[str, Any]]:
        """All members of `args` of several events, as JSON texts; none where `args` is no object."""
        try:
            return decoder.members(args)
        except ValueError:
            return [self._one(decoder.members, one) for one in args]

    def _one(self, read: Callable[[Sequence[Any]], Sequence[Mapping[str, Any]]], args: Any) -> Mapping[str, Any]:
        try:
            return read([args])[0]
        except ValueError:
            self.bad += 1
            return {}

    def _table(self, fact: str) -> Table:
        return self.texts.setdefault(fact, Table())

    def _shapes(self, triples: Sequence[tuple[bytes, ...]]) -> npt.NDArray[np.int32]:
        table = self._table("shape")
        return np.array([table[triple] if triple[0] else -1 for triple in triples], np.int32)

    def _rests(self, rests: Iterable[dict[str, str]]) -> npt.NDArray[np.int32]:
        return np.array([self.rests[json.dumps(rest)] if rest else -1 for rest in rests], np.int32)


def _memory_fact(key: str) -> str | None:
    """The fact of a key with the bytes of a device; "" for one that says nothing new, None for other keys."""
    match = _MEMORY.fullmatch(key)
    if match is None:
        return None
    return "" if match[1] == "delta" else f"memory_{match[1]}"


def _value(text: bytes) -> Any:
    """The number in a JSON text, also in a string; None for anything else."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        value = json.loads(text)
        return int(value) if isinstance(value, str | float | bool) else None
    except (ValueError, OverflowError, RecursionError):
        return None


def _placed(rows: list[int], values: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    column: npt.NDArray[Any] = np.full(count, -1, values.dtype)
    column[rows] = values
    return column


def _spread(rows: list[int], texts: list[bytes], count: int) -> list[bytes]:
    spread = [b""] * count
    for row, text in zip(rows, texts, strict=True):
        spread[row] = text
    return spread
