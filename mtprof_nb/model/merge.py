"""Several traces as one: of several runtimes, or of several windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from mtprof_nb.model.intervals import order_of
from mtprof_nb.model.one_process import facts_of, joined_facts
from mtprof_nb.model.process_facts import ProcessFacts
from mtprof_nb.model.schema import Column, Columns, Int32, concatenated, schema_of
from mtprof_nb.model.stack_tree import StackInterner, StackTree
from mtprof_nb.model.trace import (
    Allocations,
    Collections,
    Process,
    Samples,
    Trace,
    Track,
    correlation_ids,
    empty_trace,
    taken,
)

Moved = TypeVar("Moved", Allocations, Samples, Collections)


def merge(traces: Sequence[Trace]) -> Trace:
    """All events of `traces`, tables joined. The schema of `Trace` says how each other field is joined.

    A part without events counts where it has a window, allocations or dropped events.
    """
    found = [part for part in traces if len(part) or part.windows or part.allocations is not None or part.dropped]
    parts = found or list(traces[:1])
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
        if moved := self._moved_records("allocations", Allocations):
            made["allocations"] = Allocations.joined(moved)
        if sampled := self._moved_records("samples", Samples):
            made["samples"] = Samples.joined(sampled)
        if collected := self._moved_records("collections", Collections):
            made["collections"] = Collections.joined(collected)
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
        self._moved[name] = []
        trees: list[StackTree | None] = [part[name] for part in self._parts]
        for tree in trees:
            nodes: list[int] = []
            if tree is not None:
                for frame, parent in zip(tree.frame.tolist(), tree.parent.tolist(), strict=True):
                    nodes.append(interner.child(nodes[parent] if parent >= 0 else -1, tree.frames[frame]))
            self._moved[name].append(np.array(nodes, np.int32))
        return {name: None if all(tree is None for tree in trees) else interner.tree()}

    def _moved_records(self, name: str, kind: type[Moved]) -> list[Moved]:
        """The records `name` of all parts that have them, pointing to where things are in the joined trace."""
        found = [(part[name], number) for number, part in enumerate(self._parts)]
        return [kind(**self._follow(kind, dict(vars(one)), number)) for one, number in found if one is not None]

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
        known: Sequence[ProcessFacts | None] = facts_of(part) or (None,) * len(own)
        for process, (*_, said), told in zip(own, part.processes, known, strict=True):
            if process != Process() or part.tracks:
                metadata.setdefault(process, {}).update(said)
                facts.setdefault(process, []).append(told)
        position = {process: number for number, process in enumerate(metadata)}
        moved = [track._replace(process=position[own[track.process]]) for track in part.tracks]
        for track in moved:
            if track.number >= 0:
                numbers.setdefault(track._replace(number=-1), track.number)
        tracks.append([track._replace(number=-1) for track in moved])
    processes = tuple(process._replace(metadata=tuple(said.items())) for process, said in metadata.items())
    numbered = [tuple(track._replace(number=numbers.get(track, -1)) for track in own_tracks) for own_tracks in tracks]
    shared = {"processes": processes or (Process(),), "process_facts": _joined(facts)}
    return [{**vars(part), **shared, "tracks": own_tracks} for part, own_tracks in zip(parts, numbered, strict=True)]


def _joined(facts: dict[Process, list[ProcessFacts | None]]) -> tuple[ProcessFacts, ...]:
    """The facts of each of several processes; () for one alone, and where those of one are not known."""
    known = [[one for one in told if one is not None] for told in facts.values()]
    if len(facts) < 2 or any(len(one) < len(told) for one, told in zip(known, facts.values(), strict=True)):
        return ()
    return tuple(map(joined_facts, known))


def _owners(parts: Sequence[Trace]) -> list[list[Process]]:
    """The processes of each part without metadata. One without a rank has the rank that another part knows of it."""
    everyone = [[process._replace(metadata=()) for process in part.processes] for part in parts]
    has_rank = [process for own in everyone for process in own if process.rank >= 0 < process.pid]
    ranked = {process._replace(rank=-1): process for process in has_rank}
    return [[ranked.get(process, process) for process in own] for own in everyone]


def _with_known_threads(part: Trace) -> Trace:
    """`part` with a track for allocations on threads that have no events: the track tells the process."""
    records = part.allocations
    if records is None or (records.track >= 0).all():
        return part
    track = np.where(records.track < 0, len(part.tracks), records.track)
    tracks = (*part.tracks, Track(0, "threads without events"))
    return replace(part, tracks=tracks, allocations=replace(records, track=track))
