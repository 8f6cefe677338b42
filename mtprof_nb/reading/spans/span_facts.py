"""Facts of spans, from the `args` of their events, as columns.

Members that are facts become columns of their own; all others together are the event's rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import count
from json.encoder import encode_basestring_ascii
from typing import Any

import numpy as np

from mtprof_nb.model.schema import Bool, Columns, Int32
from mtprof_nb.reading.spans.growing_columns import Numbering, numbers
from mtprof_nb.reading.text.event_records import Batch, How, json_text

#: Categories of the host, whose further members are keywords of the user, and that of the allocator's records.
_HOST = frozenset({"cpu_op", "Operator", "python_function", "user_annotation"})
_ALLOCATIONS = "cpu_instant_event"
#: Events of devices on Ascend, and the allocator's records of 2021, have no category.
_NO_CATEGORY = (None, "")
_NUMBERS = {
    "External id": "external",
    "external id": "external",
    "Record function id": "record_function",
    "Sequence number": "sequence_nr",
    "Fwd thread id": "forward_thread",
    "Python id": "python_id",
    "Python parent id": "python_parent",
}
_TEXTS = {"Call stack": "call_stack", "Module Hierarchy": "module"}
_RAW = {
    "Input Dims": "dims",
    "Input dims": "dims",
    "Input type": "types",
    "Input Strides": "strides",
    "Concrete Inputs": "inputs",
    "stack": "frames",
}
#: Numbers of devices and their runtimes; where an op has such a member, it is a keyword of the user.
_OF_DEVICES = {"correlation": "correlation", "device": "device", "stream": "stream"}
_OF_ALLOCATIONS = {
    "Addr": "address",
    "Bytes": "nbytes",
    "Device Type": "device_number",
    "Device Id": "device_index",
    "Total Allocated": "total",
    "Total Reserved": "reserved",
}
#: Members that add nothing: numbers of the file's own, and repetitions of other members.
_SKIPPED = frozenset(
    {
        *("Ev Idx", "Profiler Event Index", "Trace name", "Trace iteration", "finished"),
        *("correlation_id", "runtime_name", "runtime_tid", "input_shapes", "Python module id"),
    }
)
_MEMORY = re.compile(r"\w+_memory_allocated_(before|after|delta)")
_INPUTS = ("dims", "types", "strides")


def how_of(category: Any, key: str) -> How:
    """How a member of `args` of events of a category is decoded."""
    return _meaning(_numbers_of(category), key)[0]


class FactReader:
    """Reads `args`. Texts are kept once, in tables: `texts[fact]`."""

    def __init__(self) -> None:
        #: For each fact that is a text, its values; `shape` has triples of dims, types and strides.
        self.texts: dict[str, Numbering] = {}
        #: For each tuple of keys the tuples of their values. One count numbers the values of all.
        self._rests: dict[tuple[str, ...], Numbering] = {}
        self._count = count()

    def columns(self, batch: Batch) -> Columns:
        """Columns of the facts of the spans of a batch, and `rest`."""
        facts: Columns = {}
        inputs: dict[str, Sequence[bytes]] = {}
        numbers_of = _numbers_of(batch.category)
        for key, column in batch.args.items():
            how, fact = _meaning(numbers_of, key)
            if fact in _INPUTS:
                inputs[fact] = column
            elif how is How.NUMBER:
                facts[fact] = np.maximum(facts[fact], numbers(column)) if fact in facts else numbers(column)
            else:
                facts[fact] = self._table(fact).positions(column, absent=how.empty)
        if "dims" in inputs:
            facts["shape"] = self._shapes(inputs, len(batch))
        if batch.plain or batch.others:
            facts["rest"] = self._rest(batch)
        return facts

    @cached_property
    def rests(self) -> list[str]:
        """For each number in a column `rest`, the members that are no facts: a JSON object of JSON texts."""
        texts: dict[int, str] = {}
        for keys, rows in self._rests.items():
            begins = [f"{json.dumps(key)}: " for key in keys]
            texts |= {number: _object_of_texts(begins, values) for values, number in rows.items()}
        return [texts[number] for number in range(len(texts))]

    def allocations(self, batch: Batch) -> Columns:
        """Columns of the facts of the allocator's records."""
        columns = {fact: batch.column(key) for key, fact in _OF_ALLOCATIONS.items()}
        return {fact: numbers(column) for fact, column in columns.items() if column is not None}

    @staticmethod
    def has_size(batch: Batch, facts: Columns) -> Bool:
        """Which of the allocator's records have a valid number of bytes."""
        sizes = batch.column("Bytes")
        if sizes is None:
            return np.zeros(len(batch), np.bool_)
        is_valid: Bool = facts["nbytes"] != -1
        # A release of one byte looks like a size that is none, but has a device.
        for row in np.flatnonzero(~is_valid).tolist():
            is_valid[row] = sizes[row] == -1 and any(column[row] != -1 for column in facts.values())
        return is_valid

    def _table(self, fact: str) -> Numbering:
        """The values of a fact that is a text."""
        return self.texts.setdefault(fact, Numbering())

    def _shapes(self, inputs: Mapping[str, Sequence[bytes]], count: int) -> Int32:
        nothing = (b"",) * count
        shape = self._table("shape").positions_of_rows(*(inputs.get(one, nothing) for one in _INPUTS))
        shape[[not dims for dims in inputs["dims"]]] = -1
        return shape

    def _rest(self, batch: Batch) -> Int32:
        keys = batch.plain_keys
        if batch.others:
            rows = batch.plain or ((),) * len(batch.others)
            each = ({**dict(zip(keys, row, strict=True)), **more} for row, more in zip(rows, batch.others, strict=True))
            return np.array([self._rest_of(members) for members in each], np.int32)
        table = self._values_of(keys)
        try:
            rest = np.fromiter(map(table.__getitem__, batch.plain), np.int32, len(batch.plain))
        except TypeError:  # a list or an object, where there was a plain value before
            rest = np.array([table[tuple(map(_hashable, row))] for row in batch.plain], np.int32)
        nothing = table.get((b"",) * len(keys))
        return rest if nothing is None else np.where(rest == nothing, np.int32(-1), rest)

    def _rest_of(self, members: Mapping[str, Any]) -> int:
        values = tuple(map(_hashable, members.values()))
        return self._values_of(tuple(members))[values] if any(value != b"" for value in values) else -1

    def _values_of(self, keys: tuple[str, ...]) -> Numbering:
        return self._rests.setdefault(keys, Numbering(self._count))


def _object_of_texts(begins: Sequence[str], values: Sequence[Any]) -> str:
    """A JSON object of JSON texts, as `json.dumps` writes it; `begins` has its keys and colons."""
    pairs = zip(begins, values, strict=True)
    members = [begin + encode_basestring_ascii(json_text(value)) for begin, value in pairs if value != b""]
    return f"{{{', '.join(members)}}}"


def _hashable(value: Any) -> Any:
    return json.dumps(value, default=float).encode() if isinstance(value, list | dict) else value


def _numbers_of(category: Any) -> str:
    """Which further members are numbers: those of "host", "memory", "device", or "any" of them."""
    if category in _HOST:
        return "host"
    if category in _NO_CATEGORY:
        return "any"
    return "memory" if category == _ALLOCATIONS else "device"


_FURTHER_NUMBERS: dict[str, dict[str, str]] = {
    "host": {},
    "memory": _OF_ALLOCATIONS,
    "device": _OF_DEVICES,
    "any": _OF_DEVICES | _OF_ALLOCATIONS,
}


@lru_cache(maxsize=4096)
def _meaning(numbers_of: str, key: str) -> tuple[How, str]:
    """How a member is decoded, and the fact that it is; "" for one that is no fact."""
    if fact := _NUMBERS.get(key) or _FURTHER_NUMBERS[numbers_of].get(key):
        return How.NUMBER, fact
    if key in _TEXTS:
        return How.TEXT, _TEXTS[key]
    if key in _SKIPPED or _MEMORY.fullmatch(key):
        return How.SKIPPED, ""
    return (How.RAW, _RAW[key]) if key in _RAW else (How.PLAIN, "")
