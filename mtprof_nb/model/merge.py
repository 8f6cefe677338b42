"""Several traces as one: of several runtimes, or of several windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mtprof_nb.model.intervals import order_of
from mtprof_nb.model.one_process import facts_by_process, joined_facts
from mtprof_nb.model.process_facts import ProcessFacts
from mtprof_nb.model.records import TimedRecord
from mtprof_nb.model.schema import Column, Columns, Int32, concatenated, schema_of
from mtprof_nb.model.stack_tree import StackInterner, StackTree
from mtprof_nb.model.trace import Process, Trace, Track, correlation_ids, empty_trace, taken


def merge(traces: Sequence[Trace]) -> Trace:
    """All events of `traces`, tables joined. The schema of `Trace` says how each other field is joined.

    A part without events counts where it has a window, allocations or dropped events.
    """
    used = [part for part in traces if len(part) or part.windows or part.allocations is not None or part.dropped]
    parts = used or list(traces[:1])
    if not parts:
        return empty_trace()
    if len(parts) == 1:
        return parts[0]
    return replace(parts[0], **_Merger(parts).merged())


class _Merger:
    def __init__(self, parts: Sequence[Trace]) -> None:
        self._parts = _with_same_processes(parts)
        self._first_event = np.cumsum([0, *map(len, parts)]).tolist()
        #: For each table and part, the positions of the part's entries in the joined table.
        self._moved: dict[str, list[Int32]] = {}

    def merged(self) -> Columns:
        schema = schema_of(Trace)
        made: Columns = {name: self._parts[0][name] for name in ("processes", "process_facts")}
        for table in schema.tables:
            made |= self._stacks(table) if table in schema.records else self._table(table, schema.beside.get(table, ()))
        for name, how in schema.joins.items():
            made[name] = how([part[name] for part in self._parts])
        made |= concatenated(Trace, [self._follow(Trace, part, number) for number, part in enumerate(self._parts)])
        for name, kind in schema.records.items():
            if issubclass(kind, TimedRecord) and (moved := self._moved_records(name, kind)):
                made[name] = kind.joined(moved)
        order = order_of(made["start_ns"], made["duration_ns"])
        if order is not None:
            made |= taken(made, order)
        return made | {"correlation_id": correlation_ids(made["kind"])}

    def _table(self, name: str, beside: Sequence[str]) -> dict[str, tuple[Any, ...]]:
        """The distinct entries of a table, and of the tables beside it."""
        joined: dict[Any, int] = {}
        self._moved[name] = []
        for part in self._parts:
            entries = part[name]
            others = [part[other] or ((),) * len(entries) for other in beside]
            numbers = [joined.setdefault(entry, len(joined)) for entry in zip(entries, *others, strict=True)]
            self._moved[name].append(np.array(numbers, np.int32))
        known = [name, *(other for other in beside if any(part[other] for part in self._parts))]
        return {
            one: tuple(entry[column] for entry in joined) for column, one in enumerate([name, *beside]) if one in known
        }

    def _stacks(self, name: str) -> dict[str, StackTree | None]:
        interner = StackInterner()
        trees: list[StackTree | None] = [part[name] for part in self._parts]
        self._moved[name] = [np.empty(0, np.int32) if tree is None else interner.add(tree) for tree in trees]
        return {name: None if all(tree is None for tree in trees) else interner.tree()}

    def _moved_records(self, name: str, kind: type[TimedRecord]) -> list[TimedRecord]:
        """The records `name` of all parts that have them, pointing to where things are in the joined trace."""
        records = [(part[name], number) for number, part in enumerate(self._parts)]
        return [kind(**self._follow(kind, dict(vars(one)), number)) for one, number in records if one is not None]

    def _follow(self, record: type, fields: Columns, number: int) -> Columns:
        """The columns of part `number`, pointing to where entries and events are in the joined trace."""
        columns = schema_of(record).columns.items()
        return {name: self._followed(column, fields[name], number) for name, column in columns}

    def _followed(self, column: Column, values: Any, number: int) -> Any:
        if values is None:
            return None
        if column.points_to_event:
            return np.where(values >= 0, values + self._first_event[number], -1)
        if column.table and len(moved := self._moved[column.table][number]):
            return np.where(values >= 0, moved[values], -1)
        return values


def _with_same_processes(parts: Sequence[Trace]) -> list[Columns]:
    """The fields of `parts` with one table of processes for all, and with equal numbers on equal tracks."""
    owners = _owners(parts)
    if len({process for own in owners for process in own}) > 1:
        parts = [_with_known_threads(part) for part in parts]
    metadata: dict[Process, dict[str, str]] = {}
    facts: dict[Process, list[ProcessFacts | None]] = {}
    numbers: dict[Track, int] = {}
    tracks: list[list[Track]] = []
    for part, own in zip(parts, owners, strict=True):
        known: Sequence[ProcessFacts | None] = facts_by_process(part) or (None,) * len(own)
        for process, whole, own_facts in zip(own, part.processes, known, strict=True):
            if process != Process() or part.tracks:
                metadata.setdefault(process, {}).update(whole.metadata)
                facts.setdefault(process, []).append(own_facts)
        position = {process: number for number, process in enumerate(metadata)}
        moved = [track._replace(process=position[own[track.process]]) for track in part.tracks]
        for track in moved:
            if track.number >= 0:
                numbers.setdefault(track._replace(number=-1), track.number)
        tracks.append([track._replace(number=-1) for track in moved])
    processes = tuple(process._replace(metadata=tuple(texts.items())) for process, texts in metadata.items())
    numbered = [tuple(track._replace(number=numbers.get(track, -1)) for track in own_tracks) for own_tracks in tracks]
    shared = {"processes": processes or (Process(),), "process_facts": _joined(facts)}
    return [{**vars(part), **shared, "tracks": own_tracks} for part, own_tracks in zip(parts, numbered, strict=True)]


def _joined(facts: dict[Process, list[ProcessFacts | None]]) -> tuple[ProcessFacts, ...]:
    """Facts of each process, from those of its parts.

    () for a single process, and if the facts of some part are not known.
    """
    known = [[one for one in parts if one is not None] for parts in facts.values()]
    if len(facts) < 2 or list(map(len, known)) != list(map(len, facts.values())):
        return ()
    return tuple(map(joined_facts, known))


def _owners(parts: Sequence[Trace]) -> list[list[Process]]:
    """The processes of each part without metadata, with a rank that is known from another part."""
    everyone = [[process._replace(metadata=()) for process in part.processes] for part in parts]
    has_rank = [process for own in everyone for process in own if process.rank >= 0 < process.pid]
    ranked = {process._replace(rank=-1): process for process in has_rank}
    return [[ranked.get(process, process) for process in own] for own in everyone]


def _with_known_threads(part: Trace) -> Trace:
    """`part` with a track for allocations on threads without events: a track names the process."""
    records = part.allocations
    if records is None or (records.track >= 0).all():
        return part
    track = np.where(records.track < 0, len(part.tracks), records.track)
    tracks = (*part.tracks, Track(0, "threads without events"))
    return replace(part, tracks=tracks, allocations=replace(records, track=track))
