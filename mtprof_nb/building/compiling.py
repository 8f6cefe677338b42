"""Compilations among the events of a trace: an event for each, in place of what the compiler ran.

To trace a program, torch's compiler runs its ops on tensors without values. These are no work of
the program: they count nowhere.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mtprof_nb.building.thread_intervals import ThreadIntervals
from mtprof_nb.model.compilations import COMPILE_PREFIX, REGION_PREFIX, Compilation
from mtprof_nb.model.merge import merge
from mtprof_nb.model.trace import (
    COMPILING,
    OP,
    OPTIMIZER,
    Bool,
    Columns,
    Frame,
    Int32,
    StackInterner,
    Trace,
    Track,
    empty_trace,
)

#: How the names begin of the work of the compiler's threads, and of autograd's functions of
#: compiled code.
_HELPER, _COMPILED = "compile_file", "CompiledFunction"
#: Around an op that a mode of torch's dispatcher passes on.
_CHECK = "PythonDispatchMode"


class TimedCompilation(NamedTuple):
    """A compilation, by the clock of events."""

    start_ns: int
    end_ns: int
    thread: int
    #: Outermost first, as far as the user's code goes.
    frames: list[Frame]
    facts: Compilation


def added(trace: Trace, compilations: list[TimedCompilation]) -> Trace:
    """`trace` with an event for each compilation, in place of those that ran inside."""
    if not compilations:
        return trace
    tracks = {track.native_id: track for track in trace.tracks if track.kind == "thread"}
    of = [tracks.get(one.thread) or Track(one.thread) for one in compilations]
    left_out = _inside(trace, compilations, of) | _helpers(trace) | _first_checks(trace)
    merged = merge([trace.take(~left_out), _events(trace, compilations, of)])
    return _with_their_memory(merged)


def _inside(trace: Trace, compilations: list[TimedCompilation], tracks: list[Track]) -> Bool:
    numbers = {track: number for number, track in enumerate(trace.tracks)}
    inside = np.zeros(len(trace), np.bool_)
    for one, track in zip(compilations, tracks, strict=True):
        rows = slice(*np.searchsorted(trace.start_ns, (one.start_ns, one.end_ns)))
        is_own = trace.track[rows] == numbers.get(track, -1)
        inside[rows] |= is_own & (trace.end_ns[rows] <= one.end_ns)
    return inside


def _helpers(trace: Trace) -> Bool:
    """Work of the compiler's own threads: they call other compilers, while the program waits."""
    return _within(trace, trace.where_name(lambda name: name.startswith(_HELPER)))


def _first_checks(trace: Trace) -> Bool:
    """Calls in the first run of compiled code that torch's check passes on to the op itself."""
    check = trace.where_name(_CHECK.__eq__)
    if not check.any():
        return check
    is_compiled = trace.where_name(lambda name: name.startswith((REGION_PREFIX, _COMPILED)))
    rows = np.flatnonzero(check & _within(trace, is_compiled))
    intervals = ThreadIntervals(trace.start_ns, trace.end_ns, trace.track)
    left_out = np.zeros(len(trace), np.bool_)
    parents = intervals.parents(np.ones(len(trace), np.bool_))[rows]
    left_out[rows] = left_out[parents[parents >= 0]] = True
    return left_out & ~is_compiled


def _within(trace: Trace, chosen: Bool) -> Bool:
    """The chosen events, and what ran inside them on their threads."""
    if not chosen.any():
        return chosen
    return ThreadIntervals(trace.start_ns, trace.end_ns, trace.track).inside(chosen) | chosen


def _events(trace: Trace, compilations: list[TimedCompilation], of: list[Track]) -> Trace:
    """A trace of one event for each compilation, ordered as any trace."""
    count, interner = len(compilations), StackInterner()
    tracks, facts = tuple(dict.fromkeys(of)), tuple(one.facts for one in compilations)
    names = [COMPILE_PREFIX + (one.facts.function or "?") for one in compilations]
    distinct = tuple(dict.fromkeys(names))
    starts = np.array([one.start_ns for one in compilations], np.int64)
    none = ("device", "step", "device_index")
    columns: Columns = {name: np.zeros(count, np.int64) for name in none}
    columns |= {name: np.full(count, -1) for name in ("sequence_nr", "forward")}
    columns |= {
        "name": [distinct.index(name) for name in names],
        "kind": np.full(count, OP),
        "phase": np.full(count, COMPILING),
        "start_ns": starts,
        "duration_ns": np.array([one.end_ns for one in compilations], np.int64) - starts,
        "track": [tracks.index(track) for track in of],
        "is_async": np.zeros(count, np.bool_),
        "compilation": np.arange(count),
        "correlation_id": np.arange(count),
    }
    if trace.stack is not None:
        columns["stack"] = np.array([interner.stack(one.frames) for one in compilations], np.int32)
        columns["stacks"] = interner.tree()
    made = replace(
        empty_trace(processes=trace.processes, recorded=trace.recorded),
        **columns,
        names=distinct,
        tracks=tracks,
        compilations=facts,
    )
    return made.sorted()


def _with_their_memory(trace: Trace) -> Trace:
    """`trace`, whose allocations during a compilation, outside all events, are of its event."""
    records = trace.allocations
    if records is None or trace.compilation is None:
        return trace
    event: Int32 = records.event.copy()
    for row in np.flatnonzero(trace.compilation >= 0).tolist():
        ends = trace.start_ns[row], trace.end_ns[row]
        rows = slice(*np.searchsorted(records.time_ns, ends))
        is_own = (event[rows] < 0) & (records.track[rows] == trace.track[row])
        event[rows] = np.where(is_own, row, event[rows])
    return replace(trace, allocations=replace(records, event=event))


def with_compiled_steps(trace: Trace, files: dict[str, str]) -> Trace:
    """`trace`, in which what runs in a compiled step of an optimizer has that phase.

    `files` has the file of each compiled function by the number of its compilation. Torch leaves
    out the scope of an optimizer's step where it is compiled.
    """
    steps = {REGION_PREFIX + number for number, file in files.items() if _is_optimizer(file)}
    if not steps.intersection(trace.names):
        return trace
    region = trace.where_name(steps.__contains__)
    is_step = _within(trace, region) & (trace.kind == OP) & (trace.phase != COMPILING)
    return replace(trace, phase=np.where(is_step, np.int8(OPTIMIZER), trace.phase))


def _is_optimizer(file: str) -> bool:
    return "torch/optim/" in file.replace("\\", "/")
