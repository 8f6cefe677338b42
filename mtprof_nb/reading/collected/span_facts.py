"""Facts of spans, from the `args` of their events, as columns.

Events of one group, such as ops, have the same few members. A group starts without any, and learns of a member when a
decoder meets it. Members that are facts become columns of their own; all others together are the event's rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mtprof_nb.model.schema import Columns, Int32, Int64
from mtprof_nb.reading.collected.tables import Table, numbers
from mtprof_nb.reading.text.event_records import Decoder, How

_NUMBERS = {
    "External id": "external",
    "external id": "external",
    "Record function id": "record_function",
    "Sequence number": "sequence_nr",
    "Fwd thread id": "forward_thread",
    "Python id": "python_id",
    "Python parent id": "python_parent",
    "Python module id": "python_module",
    # Members of this package's exports.
    "step": "step",
    "flops": "flops",
    "Call stack is of the forward op": "is_forward_stack",
}
_TEXTS = {
    "Call stack": "call_stack",
    "Module Hierarchy": "module",
    "phase": "phase",
    "device_type": "device_type",
    "Source line": "line",
    "Overload": "overload",
}
_RAW = {
    "Input Dims": "dims",
    "Input dims": "dims",
    "Input type": "types",
    "Input Strides": "strides",
    "Concrete Inputs": "inputs",
    "stack": "frames",
}
#: Numbers of devices and their runtimes; where an op has such a member, it is a keyword of the user.
_OF_DEVICES = {"correlation": "correlation", "device": "device", "stream": "stream", "cbid": "cbid"}
_OF_ALLOCATIONS = {
    "Addr": "address",
    "Bytes": "nbytes",
    "Device Type": "device_number",
    "Device Id": "device_index",
    "Total Allocated": "total",
    "Total Reserved": "reserved",
}
#: Members that say nothing new: numbers of the file's own, and what others say too.
_SKIPPED = frozenset(
    {
        *("Ev Idx", "Profiler Event Index", "Trace name", "Trace iteration", "finished"),
        *("correlation_id", "runtime_name", "runtime_tid", "input_shapes"),
    }
)
_MEMORY = re.compile(r"\w+_memory_allocated_(before|after|delta)")
_INPUTS = ("dims", "types", "strides")
#: A group with more members than this is read event by event.
_MOST_MEMBERS = 200


class FactReader:
    """Reads `args`. Texts are kept once, in tables: `texts[fact]`."""

    def __init__(self) -> None:
        #: For each fact that is a text, its values; `shape` has triples of dims, types and strides.
        self.texts: dict[str, Table] = {}
        #: JSON objects with all members that are no facts, whose values are JSON texts.
        self.rests = Table()
        #: How many events have `args` that are no object.
        self.bad = 0
        self._groups: dict[str, _Group] = {}

    def read(self, decoder: Decoder, args: Sequence[Any], group: str) -> Columns:
        """Columns of the facts of events of one group: "host", "device", "memory", or a finer one such as "host op"."""
        members = self._groups.setdefault(group, _Group(group.partition(" ")[0]))
        while True:
            try:
                return self._columns(members, decoder.columns(args, members.how))
            except ValueError:
                known = len(members.how)
            try:
                members.learn(decoder.keys(args))
            except ValueError:
                args = [one if self._is_object(decoder, one) else None for one in args]
            if len(members.how) == known or known > _MOST_MEMBERS:
                return self._one_by_one(members, decoder, args)

    def table(self, fact: str) -> Table:
        """The values of a fact that is a text."""
        return self.texts.setdefault(fact, Table())

    def _columns(self, group: _Group, values: Mapping[str, list[Any]]) -> Columns:
        found: Columns = {}
        inputs: dict[str, list[bytes]] = {}
        rest: dict[str, list[bytes]] = {}
        for key, column in values.items():
            fact = group.facts.get(key)
            if fact is None:
                rest[key] = column
            elif fact in _INPUTS:
                inputs[fact] = column
            elif (empty := group.how[key].value) == column[0] and column.count(empty) == len(column):
                continue
            elif group.how[key] is How.NUMBER:
                found[fact] = np.maximum(found[fact], numbers(column)) if fact in found else numbers(column)
            else:
                found[fact] = self.table(fact).positions(column, empty)
        if "dims" in inputs:
            found["shape"] = self._shapes(inputs, len(inputs["dims"]))
        if rest:
            found["rest"] = self._rest(rest)
        if "cbid" in found:
            found["rest"] = self._with_cbid(found.pop("cbid"), found.get("rest"))
        return found

    def _with_cbid(self, cbid: Int64, rest: Int32 | None) -> Int32:
        """The rest of calls of the runtime, of which most have nothing but the number of the function."""
        pairs = cbid * (len(self.rests) + 1) + (0 if rest is None else rest + 1)
        _, first, place = np.unique(pairs, return_index=True, return_inverse=True)
        texts = list(self.rests)
        found = []
        for row in first.tolist():
            others = {} if rest is None or rest[row] < 0 else json.loads(texts[rest[row]])
            members = {"cbid": str(cbid[row]), **others} if cbid[row] >= 0 else others
            found.append(self.rests[json.dumps(members)] if members else -1)
        return np.array(found, np.int32)[place]

    def _shapes(self, inputs: Mapping[str, list[bytes]], count: int) -> Int32:
        table = self.table("shape")
        triples = zip(*(inputs.get(one, [b""] * count) for one in _INPUTS), strict=True)
        return np.array([table[triple] if triple[0] else -1 for triple in triples], np.int32)

    def _rest(self, columns: Mapping[str, list[bytes]]) -> Int32:
        keys = tuple(columns)
        distinct = Table()
        place = distinct.positions(list(zip(*columns.values(), strict=True)))
        texts = [
            {key: value.decode("utf-8", "replace") for key, value in zip(keys, values, strict=True) if value}
            for values in distinct
        ]
        return np.array([self.rests[json.dumps(text)] if text else -1 for text in texts], np.int32)[place]

    def _one_by_one(self, group: _Group, decoder: Decoder, args: Sequence[Any]) -> Columns:
        """Columns for events of which each may have other members: then facts are read, and everything else is rest."""
        facts = {key: how for key, how in group.how.items() if key in group.facts}
        values = {key: [how.value] * len(args) for key, how in facts.items() if how is not How.SKIPPED}
        rests: list[dict[str, str]] = [{} for _ in args]
        for row, one in enumerate(args):
            for key, text in (decoder.members(one) if self._is_object(decoder, one) else {}).items():
                how = group.how_of(key)
                if key in values:
                    values[key][row] = text if how is How.RAW else _value(text, how)
                elif how is How.RAW:
                    rests[row][key] = text.decode("utf-8", "replace")
        found = self._columns(group, values)
        rest = [self.rests[json.dumps(one)] if one else -1 for one in rests]
        return found | {"rest": np.array(rest, np.int32)}

    def _is_object(self, decoder: Decoder, args: Any) -> bool:
        try:
            decoder.members(args)
        except ValueError:
            self.bad += 1
            return False
        return True


class _Group:
    """The members of events of one group: what each one is, and how it is decoded."""

    def __init__(self, kind: str) -> None:
        numbers_of = {"host": {}, "device": _OF_DEVICES, "memory": _OF_ALLOCATIONS}[kind]
        self._numbers = {**_NUMBERS, **numbers_of}
        #: Fact of each member that is one.
        self.facts: dict[str, str] = {}
        self.how: dict[str, How] = {}

    def learn(self, keys: Iterable[str]) -> None:
        """Add members."""
        for key in keys:
            if key not in self.how and len(self.how) <= _MOST_MEMBERS:
                self.how[key] = self.how_of(key)
                if (fact := self._fact(key)) is not None:
                    self.facts[key] = fact

    def how_of(self, key: str) -> How:
        """How a member is decoded."""
        if key in self._numbers:
            return How.NUMBER
        if key in _TEXTS:
            return How.TEXT
        if key in _SKIPPED:
            return How.SKIPPED
        memory = _MEMORY.fullmatch(key)
        if memory is not None:
            return How.SKIPPED if memory[1] == "delta" else How.NUMBER
        return How.RAW

    def _fact(self, key: str) -> str | None:
        if memory := _MEMORY.fullmatch(key):
            return f"memory_{memory[1]}"
        return self._numbers.get(key) or _TEXTS.get(key) or _RAW.get(key)


def _value(text: bytes, how: How) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return how.value
    return value
