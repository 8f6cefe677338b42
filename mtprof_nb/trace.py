"""`Trace`: the one model of a finished recording. Frozen numpy columns and the tables they point into."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mtprof_nb.columns import Bool as Bool
from mtprof_nb.columns import Frozen, freeze_columns
from mtprof_nb.columns import Int8 as Int8
from mtprof_nb.columns import Int16 as Int16
from mtprof_nb.columns import Int32 as Int32
from mtprof_nb.columns import Int64 as Int64

KINDS = ("op", "scope", "python", "runtime", "kernel")
OP, SCOPE, PYTHON, RUNTIME, KERNEL = range(5)
PHASES = ("forward", "backward", "optimizer", "other")
FORWARD, BACKWARD, OPTIMIZER, OTHER = range(4)
#: How the name begins of the event that autograd's engine wraps around each node.
ENGINE_PREFIX = "autograd::engine::evaluate_function: "

#: The last thread that a trace can number: what runs on more of them shares it.
LAST_THREAD = int(np.iinfo(np.int16).max)

#: Shapes of one op's inputs: a tuple per tensor, a tuple of tuples per tensor list, () otherwise.
Shapes = tuple[Any, ...]


class Frame(NamedTuple):
    """One source position. ``str(frame)`` is the contract's ``file:line:function``."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.function}"


class Thread(NamedTuple):
    """One thread of the recorded process: its native id, and its name where one is known."""

    native_id: int
    name: str


class SourceLine(NamedTuple):
    """One line of a file, or of a notebook cell (then `file` is the cell's compiled file name)."""

    file: str
    line: int


class OutsideOps(NamedTuple):
    """Time in which no op ran, on any thread: while a line was the innermost one, and with the lines that it called."""

    own_ns: int
    total_ns: int


@dataclass(frozen=True)
class Recorded:
    """Which optional facts this recording was asked for."""

    record_shapes: bool = False
    profile_memory: bool = False
    with_stack: bool = False
    with_flops: bool = False
    with_modules: bool = False


@dataclass(frozen=True, eq=False)
class StackTree(Frozen):
    """Interned stacks. A stack is a node; its frames are the node's, its parent's, … innermost first.

    A parent's number is always lower than its children's; the root's parent is -1.
    """

    frame: Int32
    parent: Int32
    frames: tuple[Frame, ...]

    def __post_init__(self) -> None:
        freeze_columns(self, len(self.frame), {"frame": np.int32, "parent": np.int32})

    def __len__(self) -> int:
        return len(self.frame)

    def stack(self, node: int) -> list[Frame]:
        """The frames of `node`, innermost first."""
        found = []
        while node >= 0:
            found.append(self.frames[self.frame[node]])
            node = int(self.parent[node])
        return found


class StackInterner:
    """Builds a `StackTree`: the same frames under the same parent are the same node."""

    def __init__(self) -> None:
        self._frames: dict[Frame, int] = {}
        self._nodes: dict[tuple[int, int], int] = {}
        self._frame_of: list[int] = []
        self._parent_of: list[int] = []

    def child(self, parent: int, frame: Frame) -> int:
        """The node of `frame` called from node `parent` (-1: from nowhere)."""
        frame_id = self._frames.setdefault(frame, len(self._frames))
        key = (parent, frame_id)
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = len(self._frame_of)
            self._frame_of.append(frame_id)
            self._parent_of.append(parent)
        return node

    def stack(self, outermost_first: Iterable[Frame]) -> int:
        """The node of a whole stack, -1 for an empty one."""
        node = -1
        for frame in outermost_first:
            node = self.child(node, frame)
        return node

    def tree(self) -> StackTree:
        """A tree of the stacks interned so far."""
        return StackTree(np.array(self._frame_of, np.int32), np.array(self._parent_of, np.int32), tuple(self._frames))


_ALLOCATION_DTYPES: dict[str, npt.DTypeLike] = {
    "time_ns": np.int64,
    "nbytes": np.int64,
    "total": np.int64,
    "address": np.int64,
    "event": np.int32,
    "thread": np.int16,
    "device": np.int8,
    "device_index": np.int8,
    "reserved": np.int64,
}


@dataclass(frozen=True, eq=False)
class Allocations(Frozen):
    """Allocator events in order of time: a release has negative `nbytes`."""

    time_ns: Int64
    nbytes: Int64
    #: Bytes held on that device after the event, of those that were allocated in the same recording.
    total: Int64
    #: Identifies the block; 0 where the runtime does not tell.
    address: Int64
    #: The innermost event of the same thread during which it happened, or -1.
    event: Int32
    thread: Int16
    device: Int8
    device_index: Int8
    #: Bytes the allocator had reserved of its device after the event; None where it reserves nothing.
    reserved: Int64 | None = None

    def __post_init__(self) -> None:
        freeze_columns(self, len(self.time_ns), _ALLOCATION_DTYPES)

    def __len__(self) -> int:
        return len(self.time_ns)

    def take(self, rows: npt.ArrayLike) -> Allocations:
        """The records at positions `rows`."""
        columns: dict[str, Any] = {name: getattr(self, name) for name in _ALLOCATION_DTYPES}
        kept: dict[str, Any] = {name: column[rows] for name, column in columns.items() if column is not None}
        return Allocations(**kept)

    @classmethod
    def joined(cls, parts: Iterable[Allocations]) -> Allocations:
        """The records of all parts in order of time; of one moment, those of the earlier part first."""
        parts = list(parts)
        reserves = any(part.reserved is not None for part in parts)
        columns = {name: [np.empty(0, dtype)] for name, dtype in _ALLOCATION_DTYPES.items()}
        for part in parts:
            for name, found in columns.items():
                column = getattr(part, name)
                found.append(np.zeros(len(part), np.int64) if column is None else column)
        whole = {name: np.concatenate(found) for name, found in columns.items() if name != "reserved" or reserves}
        order = np.argsort(whole["time_ns"], kind="stable")
        return cls(**{name: column[order] for name, column in whole.items()})


_COLUMN_DTYPES: dict[str, npt.DTypeLike] = {
    "name": np.int32,
    "kind": np.int8,
    "device": np.int8,
    "device_index": np.int8,
    "start_ns": np.int64,
    "duration_ns": np.int64,
    "step": np.int32,
    "thread": np.int16,
    "phase": np.int8,
    "correlation_id": np.int64,
    "sequence_nr": np.int64,
    "forward": np.int32,
    "is_user_annotation": np.bool_,
    "is_async": np.bool_,
    "launcher": np.int32,
    "overload": np.int32,
    "shape": np.int32,
    "values": np.int32,
    "record_function": np.int64,
    "extra": np.int32,
    "stack": np.int32,
    "stack_is_forward": np.bool_,
    "is_python_backward": np.bool_,
    "memory_before": np.int64,
    "memory_after": np.int64,
    "flops": np.int64,
    "module": np.int32,
    "line": np.int32,
    "line_stack": np.int32,
    "parameter": np.int32,
}
#: Columns that name another event by its position.
_EVENT_REFERENCES = ("forward", "launcher")


@dataclass(frozen=True, eq=False, repr=False)
class Trace(Frozen):
    """A finished recording: one row an event, ordered by start, then by length (an outer event first).

    Columns are read-only. An optional column is None when its flag was off. A column that points into a
    table holds -1 where there is nothing to point at.
    """

    name: Int32
    kind: Int8
    device: Int8
    start_ns: Int64
    duration_ns: Int64
    thread: Int16
    phase: Int8
    #: Unique and rising over ops, 0 for what is not an op.
    correlation_id: Int64
    #: Autograd's number, -1 where there is none.
    sequence_nr: Int64
    #: For an event of the backward pass, the forward event that made its autograd node, or -1.
    forward: Int32
    #: The profiler step in which the event started.
    step: Int32
    is_user_annotation: Bool
    is_async: Bool
    device_index: Int8

    names: tuple[str, ...]
    devices: tuple[str, ...]
    threads: tuple[Thread, ...]

    #: For a kernel or runtime event, the op that launched it, or -1. None where no device was recorded.
    launcher: Int32 | None = None
    overload: Int32 | None = None
    shape: Int32 | None = None
    #: Values of inputs that are no tensors, a position in `value_texts`.
    values: Int32 | None = None
    #: The number that torch's execution trace knows the call by, 0 where none was being made. None where nowhere.
    record_function: Int64 | None = None
    #: Metadata of a collective or of a device, a position in `extras`. None where no event has any.
    extra: Int32 | None = None
    stack: Int32 | None = None
    #: True where `stack` is the forward op's, lent to an event of the backward pass.
    stack_is_forward: Bool | None = None
    #: True for an op that Python code ran inside the backward pass. None where events of autograd nodes tell.
    is_python_backward: Bool | None = None
    #: Bytes of the event's own device around it, -1 where unknown.
    memory_before: Int64 | None = None
    memory_after: Int64 | None = None
    #: Floating point operations, -1 where no formula is known.
    flops: Int64 | None = None
    module: Int32 | None = None
    #: The marked line that was running; the one that caused the event is told by `analysis.attribution`.
    line: Int32 | None = None
    #: The marked lines that were running, innermost first: a node of `line_stacks`.
    line_stack: Int32 | None = None
    #: For an op of an optimizer, the parameter that it works for. None where shapes were not recorded.
    parameter: Int32 | None = None

    #: The number that the runtime itself gives a thread, by its native id.
    thread_numbers: Mapping[int, int] = field(default_factory=dict)
    overloads: tuple[str, ...] = ()
    shapes: tuple[Shapes, ...] = ()
    #: Element types beside `shapes`: one string per input, "" for a non-tensor.
    dtypes: tuple[tuple[str, ...], ...] = ()
    #: Strides beside `shapes`, in the same form; () where the runtime does not tell them.
    strides: tuple[Shapes, ...] = ()
    #: JSON: a value per positional input, null for a tensor, then pairs of key and value (see `input_values`).
    value_texts: tuple[str, ...] = ()
    #: JSON objects, the values as Kineto spells them.
    extras: tuple[str, ...] = ()
    stacks: StackTree | None = None
    modules: tuple[str, ...] = ()
    lines: tuple[SourceLine, ...] = ()
    parameters: tuple[str, ...] = ()
    line_stacks: StackTree | None = None
    #: Why lines are missing, or coarser than they could be; "" where nothing is wrong.
    lines_note: str = ""
    allocations: Allocations | None = None
    #: For each marked line that ran, the time while no op did. None where no line was marked, or ops are missing.
    outside: Mapping[SourceLine, OutsideOps] | None = None
    #: Source text by file name as the recording ended: of notebook cells, and of the user's files.
    sources: Mapping[str, str] = field(default_factory=dict)

    recorded: Recorded = field(default_factory=Recorded)
    #: The recording's own window, Unix nanoseconds.
    began_ns: int = 0
    ended_ns: int = 0
    #: Begin and end of each recorded window: several where a schedule, or a profile started again, recorded in parts.
    windows: tuple[tuple[int, int], ...] = ()
    pid: int = 0
    host: str = ""
    label: str = ""
    hooks: tuple[str, ...] = ()
    trace_id: str = ""
    #: Events beyond `max_events`; `dropped_exactly` is False when this is only a lower bound.
    dropped: int = 0
    dropped_exactly: bool = True
    #: Whether some ops were left out on purpose: of devices that were not asked for, or switched off for a time.
    is_partial: bool = False
    #: Estimated time that recording itself added, `own_ns` with it, or -1.
    overhead_ns: int = -1
    #: Of the window and in no op, the time that the profiler took to start, to stop and for its line marks.
    own_ns: int = 0
    #: Metadata of the user's: key to JSON text.
    metadata: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        freeze_columns(self, len(self.start_ns), _COLUMN_DTYPES)
        for name in ("metadata", "sources", "outside", "thread_numbers"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def has_all_ops(self) -> bool:
        """Whether every op that ran in the window is there, as far as is known."""
        return not self.dropped and self.dropped_exactly and not self.is_partial

    def __repr__(self) -> str:
        return f"<Trace of {len(self):,} events, {len(self.threads)} threads>"

    @property
    def end_ns(self) -> Int64:
        """End of each event."""
        return self.start_ns + self.duration_ns

    @property
    def nbytes(self) -> int:
        """Bytes held by the columns, tables of strings not counted."""
        owners = [self, self.allocations, self.stacks, self.line_stacks]
        arrays = [
            value
            for owner in owners
            if owner is not None
            for part in fields(owner)
            if isinstance(value := getattr(owner, part.name), np.ndarray)
        ]
        return sum(array.nbytes for array in arrays)

    def sorted(self) -> Trace:
        """Return the trace with its events in the order this class promises; references between events follow."""
        later, longer = np.diff(self.start_ns), np.diff(self.duration_ns)
        if np.all((later > 0) | ((later == 0) & (longer <= 0))):
            return self
        return self.take(np.lexsort((-self.duration_ns, self.start_ns)))

    def take(self, order: npt.ArrayLike) -> Trace:
        """The events at positions `order`, in that order; references to an event left out become -1."""
        order = np.asarray(order, np.int64)
        where = np.full(len(self) + 1, -1, np.int32)
        where[order] = np.arange(len(order), dtype=np.int32)
        changed: dict[str, Any] = {}
        for column in _COLUMN_DTYPES:
            values = getattr(self, column)
            if values is None:
                continue
            values = values[order]
            changed[column] = where[values] if column in _EVENT_REFERENCES else values
        if self.allocations is not None:
            changed["allocations"] = replace(self.allocations, event=where[self.allocations.event])
        return replace(self, **changed)


def empty_trace(**scalars: Any) -> Trace:
    """A trace without events; `scalars` are any of `Trace`'s fields that are not columns."""
    required = [part.name for part in fields(Trace) if part.name in _COLUMN_DTYPES and part.default is not None]
    columns: dict[str, Any] = {column: np.empty(0, _COLUMN_DTYPES[column]) for column in required}
    return Trace(**columns, **{"names": (), "devices": ("CPU",), "threads": (), **scalars})
