"""Collects the events of a Chrome trace as columns, part by part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from mtprof_nb.model.schema import Columns, Int32, Int64
from mtprof_nb.reading.spans.growing_columns import GrowingColumns, Numbering, numbers
from mtprof_nb.reading.spans.span_facts import FactReader
from mtprof_nb.reading.spans.times import NeedsDigitsError, exact_ns, to_ns
from mtprof_nb.reading.text.event_records import Batch
from mtprof_nb.reading.text.json_stream import EventStream, Part

_SPAN, _END, _FLOW, _INSTANT, _DESCRIPTION = "span", "end", "flow", "instant", "description"
#: Spans of a batch that has nothing else, and all of which are complete, as nearly all are.
_COMPLETE = "complete span"
_NO_PHASE = "phase "
_SPANS = (_COMPLETE, _SPAN)
_HAVE_TIMES = (*_SPANS, _END, _FLOW, _INSTANT)
#: Spans that are complete, and beginnings of spans whose end is an event of its own.
_OPEN_KINDS = ("X", "B", "b")
_SORTS = {
    **dict.fromkeys(_OPEN_KINDS, _SPAN),
    **dict.fromkeys(("E", "e"), _END),
    **dict.fromkeys(("s", "t", "f"), _FLOW),
    **dict.fromkeys(("i", "I", "R", "n"), _INSTANT),
    "M": _DESCRIPTION,
}
#: Flows from launches to devices. They are needed only where nothing else links the two.
LAUNCH_FLOWS = frozenset({"ac2g", "async_cpu_to_gpu", "async_gpu", "cpu_to_cuda"})
MEMORY = "[memory]"
#: The category of garbage collections, which this package writes.
_COLLECTION = "garbage_collection"
#: Beginnings of names of instants about the recording itself.
_OF_RECORDING = ("Iteration Start", "Record Window End")


class _Timed(NamedTuple):
    """Events of one sort with a valid time; how many have none, and how many complete spans have no valid duration."""

    sort: str
    batch: Batch
    at_ns: Int64
    duration_ns: Int64
    invalid: int = 0
    endless: int = 0


def _with_times(sort: str, batch: Batch, has_digits: bool) -> _Timed:
    if sort not in _HAVE_TIMES:
        return _Timed(sort, batch, batch.rows, batch.rows)
    ts, dur, count = batch.members["ts"], batch.members["dur"], len(batch)
    if sort in _SPANS and isinstance(ts, np.ndarray) and isinstance(dur, np.ndarray):
        exact = exact_ns(np.concatenate((ts, dur)))
        if exact is not None:
            return _Timed(sort, batch, exact[:count], exact[count:])
    at_ns, valid = to_ns(ts, has_digits=has_digits)
    if valid is not None:
        batch, at_ns = batch.take(np.flatnonzero(valid).tolist()), at_ns[valid]
    if sort not in _SPANS or not len(batch):
        return _Timed(sort, batch, at_ns, at_ns, count - len(batch))
    duration_ns, valid = to_ns(batch.members["dur"], has_digits=True)
    is_endless = [] if valid is None else [batch.members["ph"][row] == "X" for row in np.flatnonzero(~valid).tolist()]
    return _Timed(sort, batch, at_ns, duration_ns, count - len(batch), sum(is_endless))


class Collector:
    """The events of one file, sorted by what they are."""

    def __init__(self, stream: EventStream, facts: FactReader) -> None:
        self._stream = stream
        self.names, self.categories, self.lanes, self.ids = Numbering(), Numbering(), Numbering(), Numbering()
        self.facts = facts
        #: One row for each span: place in the file, name, category, lane, start_ns, duration_ns, and facts of `args`.
        self.spans = GrowingColumns()
        #: Ends of spans that have a row in `spans` without a duration.
        self.ends = GrowingColumns()
        self.flows = GrowingColumns()
        self.allocations = GrowingColumns()
        #: Garbage collections.
        self.collections = GrowingColumns()
        #: Pid, tid, name and `args` of the events that describe the trace.
        self.metadata: list[tuple[Any, Any, Any, Mapping[str, Any]]] = []
        #: How many events were left out, by what they are.
        self.left_out: Counter[str] = Counter()
        self.count = 0
        #: Whether some entry of the list has a phase, as all events have.
        self.has_events = False

    def run(self) -> None:
        """Collect all events of the stream."""
        for part in self._stream.parts():
            self._add(part)
            del part

    def _add(self, part: Part) -> None:
        count = len(part)
        try:
            timed = self._timed(part)
        except NeedsDigitsError:
            self._stream.wanted = self._stream.wanted._replace(digits=True)
            part = part.with_digits()
            timed = self._timed(part)
        self.left_out["Events whose `args` are no object, read without them"] += sum(one.bad for one in part.batches)
        self.has_events |= any(one.sort != _NO_PHASE for one in timed)
        for one in timed:
            self.left_out["Events without a valid time, left out"] += one.invalid
            self.left_out["Events without a valid duration, taken as 0"] += one.endless
            self._add_timed(one)
        self.count += count

    def _timed(self, part: Part) -> list[_Timed]:
        has_digits = self._stream.wanted.digits or part.again is None
        by_sort = [one for batch in part.batches for one in self._sorted(batch)]
        return [_with_times(sort, batch, has_digits) for sort, batch in by_sort]

    def _sorted(self, batch: Batch) -> Iterator[tuple[str, Batch]]:
        """The events of a batch by sort; an unknown phase is its own."""
        if batch.category in self._stream.wanted.counted:
            return
        phases = batch.members["ph"]
        if phases[0] == "X" and phases.count("X") == len(phases):
            yield _COMPLETE, batch
            return
        positions: dict[str, list[int]] = {}
        for position, phase in enumerate(phases):
            text = phase if isinstance(phase, str) else ""
            positions.setdefault(_SORTS.get(text, _NO_PHASE + text), []).append(position)
        for sort, chosen in positions.items():
            yield sort, batch.take(chosen)

    def _add_spans(self, timed: _Timed) -> None:
        batch = timed.batch
        columns: Columns = {
            "place": batch.rows + self.count,
            "name": self.names.positions(batch.members["name"]),
            "category": np.array([self.categories[batch.category]], np.int32),
            "lane": self._lanes(batch),
            "start_ns": timed.at_ns,
            "duration_ns": timed.duration_ns,
        }
        if timed.sort == _SPAN and (phases := batch.members["ph"]).count("X") < len(phases):
            columns |= {
                "open": np.array([_OPEN_KINDS.index(phase) for phase in phases], np.int8),
                "id": self._keys(batch, "b"),
            }
        columns |= self.facts.columns(batch)
        if "correlation" in columns and not self._stream.wanted.counted:
            self._stream.wanted = self._stream.wanted._replace(counted=LAUNCH_FLOWS)
        self.spans.add(len(batch), columns, batch.category)

    def _add_collections(self, timed: _Timed) -> None:
        batch, generation = timed.batch, timed.batch.column("generation")
        columns: Columns = {
            "lane": self._lanes(batch),
            "start_ns": timed.at_ns,
            "duration_ns": timed.duration_ns,
            "generation": numbers((-1,) * len(batch) if generation is None else generation),
        }
        self.collections.add(len(batch), columns)

    def _lanes(self, batch: Batch) -> Int32:
        """Positions of process and thread in `lanes`: one for each event, or one for all."""
        pid, tid = batch.members["pid"], batch.members["tid"]
        try:
            # Counting is faster than looking up, and most events come in long runs of one thread.
            if pid and pid.count(pid[0]) == len(pid) and tid.count(tid[0]) == len(tid):
                return np.array([self.lanes[pid[0], tid[0]]], np.int32)
            return self.lanes.positions_of_rows(pid, tid)
        except TypeError:  # a number that is a list or an object
            return self.lanes.positions(list(zip(pid, tid, strict=True)))

    def _keys(self, batch: Batch, phase: str) -> Int32:
        """Positions of category, name and identifier, which an asynchronous span and its end have in common."""
        columns = (batch.members[key] for key in ("ph", "name", "id"))
        category = "" if batch.category is None else str(batch.category)
        keys = [
            self.ids[category, str(name), str(number)] if one == phase else -1
            for one, name, number in zip(*columns, strict=True)
        ]
        return np.array(keys, np.int32)

    def _add_timed(self, timed: _Timed) -> None:
        batch, at_ns = timed.batch, timed.at_ns
        if timed.sort in _SPANS and batch.category == _COLLECTION:
            self._add_collections(timed)
        elif timed.sort in _SPANS:
            self._add_spans(timed)
        elif timed.sort == _DESCRIPTION:
            described = zip(*(batch.members[key] for key in ("pid", "tid", "name")), strict=True)
            self.metadata += [(*one, batch.args_of(position)) for position, one in enumerate(described)]
        elif timed.sort == _FLOW:
            self._add_flows(batch, at_ns)
        elif timed.sort == _INSTANT:
            self._add_instants(batch, at_ns)
        elif timed.sort == _END:
            columns = {"lane": self._lanes(batch), "at_ns": at_ns, "id": self._keys(batch, "e")}
            self.ends.add(len(batch), columns | {"place": batch.rows + self.count})
        else:
            phase = timed.sort.removeprefix(_NO_PHASE)
            unknown = f"Events of the unknown phase {phase[:8]!r}" if phase else "Events without a phase"
            self.left_out[f"{'Samples of counters' if phase == 'C' else unknown}, left out"] += len(batch)

    def _add_flows(self, batch: Batch, at_ns: Int64) -> None:
        columns = {
            "category": np.array([self.categories[batch.category]], np.int32),
            "lane": self._lanes(batch),
            "id": self.ids.positions(batch.members["id"]),
            "at_ns": at_ns,
            "is_end": np.array([phase == "f" for phase in batch.members["ph"]], np.bool_),
        }
        self.flows.add(len(batch), columns)

    def _add_instants(self, batch: Batch, at_ns: Int64) -> None:
        names = batch.members["name"]
        rows = [row for row, name in enumerate(names) if name == MEMORY]
        if rows:
            self._add_allocations(batch.take(rows), at_ns[rows])
        known = sum(1 for name in names if str(name).startswith(_OF_RECORDING))
        self.left_out["Instants, left out"] += len(names) - len(rows) - known

    def _add_allocations(self, records: Batch, at_ns: Int64) -> None:
        facts = self.facts.allocations(records)
        is_valid = self.facts.has_size(records, facts)
        if not is_valid.all():
            self.left_out["Allocations without a valid size, left out"] += int((~is_valid).sum())
            records, at_ns = records.take(np.flatnonzero(is_valid).tolist()), at_ns[is_valid]
            facts = {fact: column[is_valid] for fact, column in facts.items()}
        self.allocations.add(len(records), {"lane": self._lanes(records), "at_ns": at_ns, **facts})
