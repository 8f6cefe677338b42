"""Collects the events of a Chrome trace as columns, part by part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from mtprof_nb.model.schema import Bool, Columns, Int8, Int32, Int64
from mtprof_nb.reading.collected.span_facts import FactReader
from mtprof_nb.reading.collected.tables import GrowingColumns, Table
from mtprof_nb.reading.collected.times import NeedsDigitsError, to_ns
from mtprof_nb.reading.text.event_records import Event
from mtprof_nb.reading.text.json_stream import EventStream, Part

#: Phases of Chrome's format: complete spans, and beginnings of spans whose end is an event of its own.
_SPANS, _ENDS, _FLOWS, _INSTANTS = ("X", "B", "b"), ("E", "e"), ("s", "t", "f"), ("i", "I", "R", "n")
#: Groups of events with the same members of `args`, by category. All other categories are of "device".
_GROUPS = {
    "cpu_op": "host op",
    "Operator": "host op",
    "python_function": "host python",
    "user_annotation": "host",
    "cuda_runtime": "device call",
    "cuda_driver": "device call",
    "Runtime": "device call",
}
#: Beginnings of names of ops that have no members of their own.
_PLAIN_OPS = ("aten::", "autograd::", "torch::autograd")
#: Flows from launches to devices. They are needed only where nothing else links the two.
_LAUNCHES = ("ac2g", "async_cpu_to_gpu", "async_gpu", "cpu_to_cuda")
MEMORY = "[memory]"
#: Beginnings of names of instants that tell of the recording itself.
_OF_RECORDING = ("Iteration Start", "Record Window End")


class Collector:
    """The events of one file, sorted by what they are."""

    def __init__(self, stream: EventStream) -> None:
        self._stream = stream
        self.names, self.categories, self.lanes, self.ids = Table(), Table(), Table(), Table()
        self.facts = FactReader()
        #: One row for each span: name, category, lane, start_ns, duration_ns, and the facts of its `args`.
        self.spans = GrowingColumns()
        #: Ends of spans that have a row in `spans` without a duration.
        self.ends = GrowingColumns()
        self.flows = GrowingColumns()
        self.allocations = GrowingColumns()
        #: Pid, tid, name and `args` of the events that describe the trace.
        self.metadata: list[tuple[Any, Any, Any, dict[str, bytes]]] = []
        #: How many events were left out, by what they are.
        self.left_out: Counter[str] = Counter()
        self.count = 0
        self._has_correlation = False
        #: For each category its group, and for each name whether an op of that name may have members of its own.
        self._of_category: list[int] = []
        self._is_odd: list[bool] = []

    def run(self) -> None:
        """Collect all events of the stream."""
        for part in self._stream.parts():
            self._add(part)
        self.left_out["Events whose `args` are no object, read without them"] += self.facts.bad

    def _add(self, part: Part) -> None:
        spans = [event for event in part.events if event.ph in _SPANS]
        if spans:
            self._add_spans(part, spans)
        if len(spans) < len(part.events):
            self._add_others(part, [event for event in part.events if event.ph not in _SPANS])
        self.count += len(part.events)

    def _add_spans(self, part: Part, spans: list[Event]) -> None:
        spans, start_ns = self._timed(part, spans)
        duration_ns, _ = self._ns(part, spans, "dur")
        columns = {
            "name": self.names.positions([event.name for event in spans]),
            "category": self.categories.positions([event.cat for event in spans]),
            "lane": self._lanes(spans),
            "start_ns": start_ns,
            "duration_ns": duration_ns,
        }
        if [event.ph for event in spans].count("X") < len(spans):
            columns |= self._beginnings(part, spans)
        self.spans.add(len(spans), columns | self._facts(part, spans, columns))

    def _timed(self, part: Part, events: list[Event]) -> tuple[list[Event], Int64]:
        """The events with a valid time, and their times."""
        ns, valid = self._ns(part, events, "ts")
        if valid is None:
            return events, ns
        self.left_out["Events without a valid time, left out"] += int((~valid).sum())
        return [event for event, is_valid in zip(events, valid.tolist(), strict=True) if is_valid], ns[valid]

    def _ns(self, part: Part, events: Sequence[Event], member: str) -> tuple[Int64, Bool | None]:
        """Times of some events of `part` as nanoseconds, and which are valid; no duration is 0."""
        try:
            return to_ns(_values(events, member), has_digits=self._stream.digits or not part.text)
        except NeedsDigitsError:
            self._stream.digits = True
        digits = part.with_digits().events
        return to_ns(_values([digits[row] for row in self._rows(part, events)], member), has_digits=True)

    @staticmethod
    def _rows(part: Part, events: Sequence[Event]) -> list[int]:
        """The positions of some events in `part`."""
        position = {id(event): number for number, event in enumerate(part.events)}
        return [position[id(event)] for event in events]

    def _lanes(self, events: Sequence[Event]) -> Int32:
        return self.lanes.positions([(event.pid, event.tid) for event in events])

    def _beginnings(self, part: Part, spans: Sequence[Event]) -> Columns:
        """Which spans lack their end, the identifiers of asynchronous ones, and positions in the file."""
        open_kind = [_SPANS.index(event.ph) for event in spans]
        keys = [self.ids[_key(event)] if event.ph == "b" else -1 for event in spans]
        return {
            "open": np.array(open_kind, np.int8),
            "id": np.array(keys, np.int32),
            "place": self._places(part, spans),
        }

    def _places(self, part: Part, events: Sequence[Event]) -> Int64:
        """Positions in the file of some events of `part`."""
        return np.array(self._rows(part, events), np.int64) + self.count

    def _facts(self, part: Part, spans: Sequence[Event], columns: Columns) -> Columns:
        """Columns of the members of `args`."""
        group = self._groups_of(columns["category"], columns["name"])
        found: Columns = {}
        for number, name in enumerate(_GROUP_NAMES):
            rows = np.flatnonzero(group == number)
            if not len(rows):
                continue
            args = [spans[row].args for row in rows.tolist()]
            for fact, values in self.facts.read(part.decoder, args, name).items():
                if fact not in found:
                    found[fact] = np.full(len(spans), -1, values.dtype)
                found[fact][rows] = values
        self._has_correlation |= "correlation" in found
        return found

    def _groups_of(self, category: Int32, name: Int32) -> Int8:
        """The group of each span, a position in `_GROUP_NAMES`."""
        for one in list(self.categories)[len(self._of_category) :]:
            self._of_category.append(_GROUP_NAMES.index(_GROUPS.get(one, "device")))
        for one in list(self.names)[len(self._is_odd) :]:
            self._is_odd.append(not (isinstance(one, str) and one.startswith(_PLAIN_OPS)))
        group: Int8 = np.array(self._of_category, np.int8)[category]
        odd = np.array(self._is_odd, np.bool_)[name] & (group == _GROUP_NAMES.index("host op"))
        return np.where(odd, np.int8(_GROUP_NAMES.index("host")), group)

    def _add_others(self, part: Part, events: list[Event]) -> None:
        if self._has_correlation:
            events = [event for event in events if event.cat not in _LAUNCHES]
        by_phase: dict[str, list[Event]] = {}
        for event in events:
            by_phase.setdefault(event.ph if isinstance(event.ph, str) else "", []).append(event)
        for phase, found in by_phase.items():
            if phase == "M":
                self._add_descriptions(part, found)
            elif phase in _FLOWS:
                self._add_flows(part, found)
            elif phase in _INSTANTS:
                self._add_instants(part, found)
            elif phase in _ENDS:
                self._add_ends(part, found)
            else:
                what = "Samples of counters" if phase == "C" else f"Events of the unknown phase {phase[:8]!r}"
                self.left_out[f"{what}, left out"] += len(found)

    def _add_descriptions(self, part: Part, events: list[Event]) -> None:
        for event in events:
            try:
                members = part.decoder.members(event.args)
            except ValueError:
                members = {}
            self.metadata.append((event.pid, event.tid, event.name, members))

    def _add_flows(self, part: Part, flows: list[Event]) -> None:
        flows, at_ns = self._timed(part, flows)
        columns = {
            "category": self.categories.positions([event.cat for event in flows]),
            "lane": self._lanes(flows),
            "id": self.ids.positions([event.id for event in flows]),
            "at_ns": at_ns,
            "is_end": np.array([event.ph == "f" for event in flows], np.bool_),
        }
        self.flows.add(len(flows), columns)

    def _add_instants(self, part: Part, instants: list[Event]) -> None:
        instants, at_ns = self._timed(part, instants)
        is_memory = np.array([event.name == MEMORY for event in instants], np.bool_)
        records = [event for event, chosen in zip(instants, is_memory.tolist(), strict=True) if chosen]
        if records:
            facts = self.facts.read(part.decoder, [event.args for event in records], "memory")
            self.allocations.add(len(records), {"lane": self._lanes(records), "at_ns": at_ns[is_memory], **facts})
        unknown = sum(1 for event in instants if event.name != MEMORY and not str(event.name).startswith(_OF_RECORDING))
        self.left_out["Instants, left out"] += unknown

    def _add_ends(self, part: Part, ends: list[Event]) -> None:
        ends, at_ns = self._timed(part, ends)
        keys = [self.ids[_key(event)] if event.ph == "e" else -1 for event in ends]
        columns = {"lane": self._lanes(ends), "at_ns": at_ns, "id": np.array(keys, np.int32)}
        self.ends.add(len(ends), columns | {"place": self._places(part, ends)})


_GROUP_NAMES = ("device", "device call", "host", "host op", "host python")


def _values(events: Sequence[Event], member: str) -> list[Any]:
    """A member of each event; of a duration, 0 where it is missing."""
    values = list(map(attrgetter(member), events))
    return [value or 0 for value in values] if member == "dur" else values


def _key(event: Event) -> tuple[str, str, str]:
    """An asynchronous span and its end have category, name and identifier in common."""
    return str(event.cat), str(event.name), str(event.id)
