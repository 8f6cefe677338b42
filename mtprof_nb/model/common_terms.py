"""Traces of several processes in common terms: on one clock, and with one name for one source file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from mtprof_nb.model.source_files import is_cell
from mtprof_nb.model.trace import OutsideOps, SourceLine, StackTree, Trace


def moved_clock(trace: Trace, offset_ns: int) -> Trace:
    """The trace with all of its times later by `offset_ns`."""
    if not offset_ns:
        return trace
    records, samples, collected = trace.allocations, trace.samples, trace.collections
    return replace(
        trace,
        start_ns=trace.start_ns + offset_ns,
        allocations=None if records is None else replace(records, time_ns=records.time_ns + offset_ns),
        samples=None
        if samples is None
        else replace(samples, time_ns=samples.time_ns + offset_ns, taken_ns=samples.taken_ns + offset_ns),
        collections=None if collected is None else replace(collected, start_ns=collected.start_ns + offset_ns),
        began_ns=trace.began_ns + offset_ns,
        ended_ns=trace.ended_ns + offset_ns,
        windows=_moved(trace.windows, offset_ns),
        process_facts=tuple(
            facts._replace(
                began_ns=facts.began_ns + offset_ns,
                ended_ns=facts.ended_ns + offset_ns,
                windows=_moved(facts.windows, offset_ns),
            )
            for facts in trace.process_facts
        ),
    )


def _moved(windows: tuple[tuple[int, int], ...], offset_ns: int) -> tuple[tuple[int, int], ...]:
    return tuple((began + offset_ns, ended + offset_ns) for began, ended in windows)


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
