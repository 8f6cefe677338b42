"""One process of a recording as a recording of its own, and the facts that make it whole again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mtprof_nb.model.process_facts import ProcessFacts
from mtprof_nb.model.records import TimedRecord
from mtprof_nb.model.schema import Int32, schema_of
from mtprof_nb.model.trace import Trace


def of_process(trace: Trace, number: int) -> Trace:
    """The events of the process at position `number` of `trace`, as that process alone would have recorded them.

    Where the facts of single processes are not known, its window is the time that its events span.
    """
    if len(trace.processes) == 1:
        return trace
    own = [place for place, track in enumerate(trace.tracks) if track.process == number]
    moved = np.full(len(trace.tracks) + 1, -1, np.int32)
    moved[own] = np.arange(len(own), dtype=np.int32)
    chosen = trace.take(np.flatnonzero(moved[trace.track] >= 0))
    records = {
        name: _followed(record, moved)
        for name in schema_of(Trace).records
        if isinstance(record := getattr(chosen, name), TimedRecord)
    }
    return replace(
        chosen,
        **records,
        **_fields(chosen, number),
        track=moved[chosen.track],
        tracks=tuple(trace.tracks[place]._replace(process=0) for place in own),
        processes=(trace.processes[number],),
        process_facts=(),
    )


def _followed(record: Any, moved: Int32) -> Any:
    """The rows of a record on tracks that stay, with the new positions of these."""
    rows = record.take(np.flatnonzero(moved[record.track] >= 0))
    return replace(rows, track=moved[rows.track])


def _fields(chosen: Trace, number: int) -> dict[str, Any]:
    """The fields of the trace that the facts of a process have; where these are not known, its window."""
    if chosen.process_facts:
        facts = chosen.process_facts[number]
        return facts._asdict() | {"outside": None if facts.outside is None else dict(facts.outside)}
    began = int(chosen.start_ns.min()) if len(chosen) else 0
    ended = int(chosen.end_ns.max()) if len(chosen) else 0
    return {"began_ns": began, "ended_ns": ended, "windows": ((began, ended),), "outside": None}


def facts_by_process(trace: Trace) -> tuple[ProcessFacts, ...]:
    """The facts of each process of `trace`; () if they are not known."""
    if len(trace.processes) > 1:
        return trace.process_facts
    values = {name: getattr(trace, name) for name in ProcessFacts._fields}
    return (ProcessFacts(**values | {"outside": None if trace.outside is None else tuple(trace.outside.items())}),)


def joined_facts(parts: Sequence[ProcessFacts]) -> ProcessFacts:
    """The facts of several recordings of one process, joined as the fields of a `Trace` are."""
    if len(parts) == 1:
        return parts[0]
    joins = schema_of(Trace).joins
    values = {name: [getattr(part, name) for part in parts] for name in ProcessFacts._fields}
    values["outside"] = [None if pairs is None else dict(pairs) for pairs in values["outside"]]
    joined = {name: joins[name](of) if name in joins else of[0] for name, of in values.items()}
    outside = joined["outside"]
    return ProcessFacts(**joined | {"outside": None if outside is None else tuple(outside.items())})
