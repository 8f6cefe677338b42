"""`Trace`: the one model of a finished recording. Frozen numpy columns and the tables they point into."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mtprof_nb.model.compilations import Compilation as Compilation
from mtprof_nb.model.input_values import check_metadata_of_event, check_values
from mtprof_nb.model.intervals import order_of, runs_of_equal
from mtprof_nb.model.process_facts import OutsideOps as OutsideOps
from mtprof_nb.model.process_facts import ProcessFacts as ProcessFacts
from mtprof_nb.model.process_facts import Recorded as Recorded
from mtprof_nb.model.process_facts import SourceLine as SourceLine
from mtprof_nb.model.process_facts import StepStarts as StepStarts
from mtprof_nb.model.process_facts import Unrecorded as Unrecorded
from mtprof_nb.model.process_facts import flags_of_any, summed
from mtprof_nb.model.records import Allocations as Allocations
from mtprof_nb.model.records import Collections as Collections
from mtprof_nb.model.records import CompiledCalls as CompiledCalls
from mtprof_nb.model.records import Samples as Samples
from mtprof_nb.model.schema import (
    POINTS_TO_EVENT,
    TIMES,
    Absent,
    Beside,
    CheckedBy,
    Joined,
    Moment,
    PointsInto,
    Record,
    Within,
    all_known,
    concatenated,
    of_all,
    schema_of,
    sorted_entries,
    updated,
)
from mtprof_nb.model.schema import Bool as Bool
from mtprof_nb.model.schema import Columns as Columns
from mtprof_nb.model.schema import Int8 as Int8
from mtprof_nb.model.schema import Int32 as Int32
from mtprof_nb.model.schema import Int64 as Int64
from mtprof_nb.model.stack_tree import Frame as Frame
from mtprof_nb.model.stack_tree import StackInterner as StackInterner
from mtprof_nb.model.stack_tree import StackTree as StackTree
from mtprof_nb.model.tracks import Collective as Collective
from mtprof_nb.model.tracks import Process as Process
from mtprof_nb.model.tracks import Track as Track
from mtprof_nb.model.tracks import joined_metadata


class Kind(NamedTuple):
    """A kind of event: its name, Kineto's name of it, whether it runs on a device, and whether it keeps that busy."""

    name: str
    activity_type: str
    on_device: bool = False
    is_work: bool = False


OP, SCOPE, PYTHON, RUNTIME, KERNEL, COPY, SET, COLLECTIVE, SYNC, DEVICE_SCOPE = range(10)
_KINDS = {
    OP: Kind("op", "cpu_op"),
    SCOPE: Kind("scope", "user_annotation"),
    PYTHON: Kind("python", "python_function"),
    RUNTIME: Kind("runtime", "runtime"),
    KERNEL: Kind("kernel", "kernel", on_device=True, is_work=True),
    COPY: Kind("copy", "gpu_memcpy", on_device=True, is_work=True),
    SET: Kind("set", "gpu_memset", on_device=True, is_work=True),
    COLLECTIVE: Kind("collective", "kernel", on_device=True, is_work=True),
    SYNC: Kind("sync", "cuda_sync", on_device=True),
    DEVICE_SCOPE: Kind("device_scope", "gpu_user_annotation", on_device=True),
}
_BY_NUMBER = tuple(_KINDS[number] for number in range(len(_KINDS)))
KINDS = tuple(kind.name for kind in _BY_NUMBER)
#: Kineto's names of the kinds.
ACTIVITY_TYPES = tuple(kind.activity_type for kind in _BY_NUMBER)
#: Kinds whose time is a device's time: neither waiting on a device nor naming a span there is work.
DEVICE_WORK = tuple(kind.name for kind in _BY_NUMBER if kind.is_work)


def on_device(kind: Int8) -> Bool:
    """Which of these kinds run on a device rather than on the host that drives it."""
    return _chosen(kind, [each.on_device for each in _BY_NUMBER])


def _chosen(kind: Int8, choice: list[bool]) -> Bool:
    chosen: Bool = np.array(choice).take(kind, mode="clip")
    chosen.flags.writeable = False
    return chosen


PHASES = ("forward", "backward", "optimizer", "other", "compiling")
FORWARD, BACKWARD, OPTIMIZER, OTHER, COMPILING = range(5)
#: How the name begins of the event that autograd's engine wraps around each node.
ENGINE_PREFIX = "autograd::engine::evaluate_function: "
#: How the name begins of the scope of a profiler step.
STEP_PREFIX = "ProfilerStep#"

#: Shapes of one op's inputs: a tuple per tensor, a tuple of tuples per tensor list, () otherwise.
Shapes = tuple[tuple[int, ...] | tuple[tuple[int, ...], ...], ...]


@dataclass(frozen=True, eq=False, repr=False)
class Trace(Record):
    """A finished recording: one row an event, ordered by start, then by length (an outer event first).

    Columns are read-only. An optional column is None when its flag was off. A column that points into a
    table holds -1 where there is nothing to point at.
    """

    #: Position in `names`.
    name: Annotated[Int32, PointsInto("names", always=True)]
    #: Position in `KINDS`: op, scope, Python call, runtime call, or one of six kinds of device event.
    kind: Annotated[Int8, Within(0, len(KINDS))]
    #: Device type, a position in `devices`.
    device: Annotated[Int8, PointsInto("devices", always=True)]
    #: Unix nanoseconds.
    start_ns: Annotated[Int64, TIMES]
    #: Never negative.
    duration_ns: Annotated[Int64, Within(0, TIMES.limit)]
    #: The thread or device stream that ran the event, a position in `tracks`.
    track: Annotated[Int32, PointsInto("tracks", always=True)]
    #: Position in `PHASES`: forward, backward, optimizer, other or compiling.
    phase: Annotated[Int8, Within(0, len(PHASES))]
    #: Unique and increasing over ops, 0 for other events.
    correlation_id: Int64
    #: Autograd's sequence number, -1 if there is none.
    sequence_nr: Annotated[Int64, Absent(-1)]
    #: For an event of the backward pass, the forward event that created its autograd node, or -1.
    forward: Annotated[Int32, POINTS_TO_EVENT]
    #: Number of the profiler step in which the event started.
    step: Annotated[Int32, Within(0, 1 << 31)]
    #: True for scopes that ended on another thread, or that overlap other scopes of their track.
    is_async: Bool
    #: Index among devices of one type, as the 1 of "cuda:1".
    device_index: Int8

    #: Names of events.
    names: tuple[str, ...]
    #: Device types: "CPU", "CUDA", "NPU", …
    devices: tuple[str, ...]
    #: Threads and device streams.
    tracks: tuple[Track, ...]

    #: For device events and runtime calls, the op that caused them, or -1. None if no device was recorded.
    launcher: Annotated[Int32 | None, POINTS_TO_EVENT] = None
    #: For device events, the runtime call that launched them, or -1. None if no device was recorded.
    launch: Annotated[Int32 | None, POINTS_TO_EVENT] = None
    #: Bytes that a copy, a set or a collective moved, -1 if unknown.
    moved_bytes: Annotated[Int64 | None, Absent(-1)] = None
    #: For a collective, on a device or on the host, a position in `collectives`.
    collective: Annotated[Int32 | None, PointsInto("collectives")] = None
    #: Overload of the op, a position in `overloads`.
    overload: Annotated[Int32 | None, PointsInto("overloads")] = None
    #: Shapes of the inputs, a position in `shapes`. None without `record_shapes`.
    shape: Annotated[Int32 | None, PointsInto("shapes")] = None
    #: Values of the inputs that are not tensors, a position in `value_texts`.
    values: Annotated[Int32 | None, PointsInto("value_texts")] = None
    #: Number of the call in torch's execution trace, 0 if none was being written. None if no event has one.
    record_function: Int64 | None = None
    #: Metadata of a collective or of a device, a position in `extras`. None if no event has any.
    extra: Annotated[Int32 | None, PointsInto("extras")] = None
    #: Python stack of the event, a node of `stacks`. None without `with_stack`.
    stack: Annotated[Int32 | None, PointsInto("stacks")] = None
    #: True where `stack` is the stack of the forward op, shown for an event of the backward pass.
    stack_is_forward: Bool | None = None
    #: True for an op that Python code ran inside the backward pass. None if events of autograd nodes show that.
    is_python_backward: Bool | None = None
    #: Bytes held on the event's device before it, -1 if unknown. None without `profile_memory`.
    memory_before: Annotated[Int64 | None, Absent(-1)] = None
    #: Bytes held on the event's device after it, as `memory_before`.
    memory_after: Annotated[Int64 | None, Absent(-1)] = None
    #: Floating point operations, -1 if no formula is known. None without `with_flops`.
    flops: Annotated[Int64 | None, Absent(-1)] = None
    #: Path of the `nn.Module` that was being called, a position in `modules`. None without `with_modules`.
    module: Annotated[Int32 | None, PointsInto("modules")] = None
    #: The marked line that was running. `analysis.lines.attribution` finds the line that caused the event.
    line: Annotated[Int32 | None, PointsInto("lines")] = None
    #: The marked lines that were running, innermost first: a node of `line_stacks`.
    line_stack: Annotated[Int32 | None, PointsInto("line_stacks")] = None
    #: For a compilation, a position in `compilations`. None if nothing was compiled.
    compilation: Annotated[Int32 | None, PointsInto("compilations")] = None
    #: For an op of an optimizer, the parameter that it updates. None if shapes were not recorded.
    parameter: Annotated[Int32 | None, PointsInto("parameters")] = None

    #: Recorded processes.
    processes: tuple[Process, ...] = (Process(),)
    #: For each of several processes, its own values of fields that this trace has joined; () if they are not known.
    process_facts: Annotated[tuple[ProcessFacts, ...], Beside("processes")] = ()
    #: Collective calls.
    collectives: tuple[Collective, ...] = ()
    #: Names of overloads.
    overloads: tuple[str, ...] = ()
    #: Shapes of one op's inputs each: a tuple per tensor, a tuple of tuples per tensor list, () otherwise.
    shapes: tuple[Shapes, ...] = ()
    #: Element types beside `shapes`: one string per input, "" for a non-tensor.
    dtypes: Annotated[tuple[tuple[str, ...], ...], Beside("shapes")] = ()
    #: Strides beside `shapes`, in the same form; () if the runtime does not report them.
    strides: Annotated[tuple[Shapes, ...], Beside("shapes")] = ()
    #: JSON: a value per positional input, null for a tensor, then pairs of key and value (see `model.input_values`).
    value_texts: tuple[Annotated[str, CheckedBy(check_values)], ...] = ()
    #: JSON objects with metadata of events: JSON text by key, both spelled as Kineto spells them.
    extras: tuple[Annotated[str, CheckedBy(check_metadata_of_event)], ...] = ()
    #: Python stacks.
    stacks: StackTree | None = None
    #: Paths of modules, such as "net.layers.0".
    modules: tuple[str, ...] = ()
    #: Marked lines.
    lines: tuple[SourceLine, ...] = ()
    #: Names of parameters.
    parameters: tuple[str, ...] = ()
    #: Facts of compilations.
    compilations: tuple[Compilation, ...] = ()
    #: Stacks of marked lines.
    line_stacks: StackTree | None = None
    #: Why lines are missing or inexact; "" if they are complete.
    lines_note: Annotated[str, Joined(lambda notes: "; ".join(filter(None, dict.fromkeys(notes))))] = ""
    #: Facts of a file that were not understood or are inexact, one sentence each.
    notes: Annotated[tuple[str, ...], Joined(of_all)] = ()
    #: Allocator events. None without `profile_memory`.
    allocations: Allocations | None = None
    #: Samples of the threads' Python stacks. None without `with_python`.
    samples: Samples | None = None
    #: Garbage collections. None if they are not known.
    collections: Collections | None = None
    #: Calls of compiled code for which the user's lines are known. None if there are none.
    compiled: CompiledCalls | None = None
    #: For each marked line that ran, the time during which no op ran. None if no line was marked, or ops are missing.
    outside: Annotated[Mapping[SourceLine, OutsideOps] | None, Joined(summed)] = None
    #: Source text of notebook cells and of the user's files when the recording ended, by file name.
    sources: Annotated[Mapping[str, str], Joined(updated)] = field(default_factory=dict)
    #: Labels of notebook cells, such as "Cell [3]", by file name.
    cells: Annotated[Mapping[str, str], Joined(updated)] = field(default_factory=dict)

    #: Flags of the recording.
    recorded: Annotated[Recorded, Joined(flags_of_any)] = field(default_factory=Recorded)
    #: Start of the recording, Unix nanoseconds.
    began_ns: Annotated[Moment, Joined(min)] = 0
    #: Until when the recording is complete, Unix nanoseconds: its end, or the moment at which it was full.
    ended_ns: Annotated[Moment, Joined(max)] = 0
    #: Start and end of each recorded window: several if a schedule repeats, or a profile was started again.
    windows: Annotated[tuple[tuple[Moment, Moment], ...], Joined(sorted_entries)] = ()
    #: For each window that was complete only until its end in `windows`, the time from there to its real end.
    unrecorded: Annotated[tuple[Unrecorded, ...], Joined(sorted_entries)] = ()
    #: When each step of the windows began, and its number; () if the program marked none. The number is -1 where a loop
    #: over `steps()` ended: from there on `step` goes on, but there is no step.
    step_starts: Annotated[StepStarts, Joined(sorted_entries)] = ()
    #: `name` of the profile.
    label: str = ""
    #: Names of the hooks that recorded.
    hooks: Annotated[tuple[str, ...], Joined(of_all)] = ()
    #: Identifier of the recording, as torch writes it into its exports.
    trace_id: str = ""
    #: Number of events that were not kept, as those beyond `max_events`.
    dropped: Annotated[int, Joined(sum)] = 0
    #: False if `dropped` is only a lower bound.
    dropped_exactly: Annotated[bool, Joined(all)] = True
    #: True if ops are missing: CPU was not requested or was switched off, or another profiler emptied the recording.
    is_partial: Annotated[bool, Joined(any)] = False
    #: Estimated time that recording added, including `own_ns`; -1 if unknown.
    overhead_ns: Annotated[int, Joined(all_known)] = -1
    #: Time of the window, outside ops, that the profiler took to start, to stop and for its line marks.
    own_ns: Annotated[int, Joined(sum)] = 0
    #: Estimated time that hooks written in Python took between ops, a part of `overhead_ns`.
    between_ops_ns: Annotated[int, Joined(sum)] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("sources", "cells", "outside"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def has_all_ops(self) -> bool:
        """Whether every op that ran in the windows is there, as far as is known."""
        lost_some = bool(self.dropped) or not self.dropped_exactly
        return not self.is_partial and (bool(self.unrecorded) or not lost_some)

    def __repr__(self) -> str:
        threads = sum(track.kind == "thread" for track in self.tracks)
        processes = f", {len(self.processes)} processes" if len(self.processes) > 1 else ""
        return f"<Trace of {len(self):,} events, {threads} threads{processes}>"

    def processes_of(self, tracks: Int32) -> Int32:
        """For each of `tracks`, the position of its process in `processes`."""
        return np.array([track.process for track in self.tracks] or [0], np.int32)[tracks]

    def track_title(self, track: int) -> str:
        """The title of the track at position `track`, after its process's where there are several."""
        return self.process_title(self.tracks[track].process, self.tracks[track].title)

    def process_title(self, process: int, title: str) -> str:
        """`title`; of several processes, after the title of the one at position `process`."""
        return f"{self.processes[process].title}, {title}" if len(self.processes) > 1 else title

    def by_process(self, tracks: Int32) -> list[Any]:
        """For each process, an index into `tracks` that selects its own."""
        if len(self.processes) == 1:
            return [slice(None)]
        of = self.processes_of(tracks)
        rows_of = [np.empty(0, np.int64)] * len(self.processes)
        for rows in runs_of_equal(of):
            rows_of[int(of[rows[0]])] = rows
        return rows_of

    def where_name(self, accepts: Callable[[str], bool]) -> Bool:
        """The events whose name `accepts`: called once for each distinct name, of which it gets 20,000 characters."""
        return np.array([*(accepts(name[:20_000]) for name in self.names), False], np.bool_)[self.name]

    @property
    def is_user_annotation(self) -> Bool:
        """Which events are scopes that the user or a library opened with `record_function`, on the host or a device."""
        is_scope: Bool = (self.kind == SCOPE) | (self.kind == DEVICE_SCOPE)
        return is_scope

    @cached_property
    def on_device(self) -> Bool:
        """Which events ran on a device rather than on the host that drives it."""
        return on_device(self.kind)

    @cached_property
    def is_device_work(self) -> Bool:
        """Which events kept a device busy: kernels, copies, sets and collectives."""
        return _chosen(self.kind, [kind.is_work for kind in _BY_NUMBER])

    @property
    def metadata(self) -> Mapping[str, str]:
        """The metadata of all processes, the user's and `mtprof_threads`: key to JSON text.

        A key for which processes have different texts is there once for each: `rank 0, seed` and `rank 1, seed`.
        """
        return MappingProxyType(joined_metadata(self.processes))

    @cached_property
    def end_ns(self) -> Int64:
        """End of each event."""
        ends: Int64 = self.start_ns + self.duration_ns
        ends.flags.writeable = False
        return ends

    @property
    def nbytes(self) -> int:
        """Bytes held by the columns, tables of strings not counted."""
        owners = [self, *(getattr(self, name) for name in schema_of(Trace).records)]
        return sum(column.nbytes for owner in owners if owner is not None for column in owner.columns.values())

    def sorted(self) -> Trace:
        """Return the trace with its events in the order this class promises; references between events follow."""
        order = order_of(self.start_ns, self.duration_ns)
        return self if order is None else self.take(order)

    def take(self, chosen: npt.ArrayLike) -> Trace:
        """The events at positions `chosen`, in that order, or where it is true; references to others become -1."""
        chosen = np.asarray(chosen)
        order = np.arange(len(self))[chosen if chosen.dtype == np.bool_ else chosen.astype(np.int64)]
        return replace(self, **taken(vars(self), order))


def taken(fields: Columns, order: Int64) -> Columns:
    """The columns of `fields`, and its allocations, for the events at `order`; references to others become -1."""
    where = np.full(len(fields["start_ns"]) + 1, -1, np.int32)
    where[order] = np.arange(len(order), dtype=np.int32)
    schema = schema_of(Trace).columns
    columns = {name: fields[name][order] for name in schema if fields.get(name) is not None}
    columns |= {name: where[column] for name, column in columns.items() if schema[name].points_to_event}
    if fields.get("allocations") is not None:
        columns["allocations"] = replace(fields["allocations"], event=where[fields["allocations"].event])
    return columns


def correlation_ids(kind: Int8) -> Int64:
    """Numbers of ops in their order from 1 on, and 0 for other events."""
    is_op = kind == OP
    numbers: Int64 = np.cumsum(is_op) * is_op
    return numbers


def empty_trace(**scalars: Any) -> Trace:
    """A trace without events; `scalars` are any of `Trace`'s fields that are not columns."""
    columns: dict[str, Any] = concatenated(Trace, [])
    return Trace(**columns, **{"names": (), "devices": ("CPU",), "tracks": (), **scalars})
