"""Traces of several processes in common terms: on one clock, and with one name for one source file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mtprof_nb.model.records import TimedRecord
from mtprof_nb.model.schema import schema_of
from mtprof_nb.model.source_files import is_cell
from mtprof_nb.model.trace import OutsideOps, ProcessFacts, SourceLine, StackTree, Trace


def moved_clock(trace: Trace, offset_ns: int) -> Trace:
    """The trace with all of its times later by `offset_ns`."""
    if not offset_ns:
        return trace
    records = {name: getattr(trace, name) for name in schema_of(Trace).records}
    moved = {name: _moved_record(one, offset_ns) for name, one in records.items() if isinstance(one, TimedRecord)}
    facts = tuple(one._replace(**_moved_facts(one, offset_ns)) for one in trace.process_facts)
    own = _moved_facts(trace, offset_ns)
    return replace(trace, start_ns=trace.start_ns + offset_ns, process_facts=facts, **moved, **own)


def _moved_record(record: Any, offset_ns: int) -> Any:
    times = [name for name in record.columns if name in ("start_ns", "time_ns", "taken_ns")]
    return replace(record, **{name: getattr(record, name) + offset_ns for name in times})


def _moved_facts(facts: Trace | ProcessFacts, offset_ns: int) -> dict[str, Any]:
    """The times that a trace and the facts of a process both have."""
    return {
        "began_ns": facts.began_ns + offset_ns,
        "ended_ns": facts.ended_ns + offset_ns,
        "windows": tuple((began + offset_ns, ended + offset_ns) for began, ended in facts.windows),
        "unrecorded": tuple(
            one._replace(began_ns=one.began_ns + offset_ns, ended_ns=one.ended_ns + offset_ns)
            for one in facts.unrecorded
        ),
        "step_starts": tuple((start + offset_ns, number) for start, number in facts.step_starts),
    }


def with_renamed_files(trace: Trace, names: Mapping[str, str]) -> Trace:
    """The trace with each file under the name that `names` has for it; others keep theirs."""
    if all(old == new for old, new in names.items()):
        return trace

    def named(file: str) -> str:
        return names.get(file, file)

    facts = (
        one._replace(outside=None if one.outside is None else tuple(_outside(dict(one.outside), named).items()))
        for one in trace.process_facts
    )
    return replace(
        trace,
        lines=tuple(SourceLine(named(file), line) for file, line in trace.lines),
        stacks=_stacks(trace.stacks, named),
        line_stacks=_stacks(trace.line_stacks, named),
        outside=None if trace.outside is None else _outside(trace.outside, named),
        sources={named(file): text for file, text in trace.sources.items()},
        cells={named(file): label for file, label in trace.cells.items()},
        process_facts=tuple(facts),
    )


def _stacks(tree: StackTree | None, named: Callable[[str], str]) -> StackTree | None:
    if tree is None:
        return None
    return replace(tree, frames=tuple(frame._replace(file=named(frame.file)) for frame in tree.frames))


def _outside(times: Mapping[SourceLine, OutsideOps], named: Callable[[str], str]) -> dict[SourceLine, OutsideOps]:
    return {SourceLine(named(line.file), line.line): time for line, time in times.items()}


def with_same_cells(traces: Sequence[Trace]) -> list[Trace]:
    """The traces with one file name for cells of the same text: a kernel names a cell's file after its own process."""
    first: dict[str, str] = {}
    renamed = []
    for trace in traces:
        names: dict[str, str] = {}
        for file, text in trace.sources.items():
            name = first.setdefault(text, file) if is_cell(file) else file
            # A process that ran the same text twice keeps the second one apart.
            names[file] = name if name not in names.values() and (name == file or name not in trace.sources) else file
        renamed.append(with_renamed_files(trace, names))
    return renamed
