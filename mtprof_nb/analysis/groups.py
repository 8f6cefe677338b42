"""Groups of events and their summed costs, computed on whole columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mtprof_nb.analysis.costs import Costs, averaged_costs, averaged_name
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.nesting import nesting
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.source_files import is_cell
from mtprof_nb.model.trace import KINDS, SCOPE, Bool, Int8, Int32, Int64, Trace

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Groups:
    """One entry a group, in the order in which the groups first appear in the trace."""

    #: The group of each event of the trace, -1 for events that are not counted.
    of_event: Int32
    #: The first event of each group: its keys are those of the group.
    first: Int64
    count: Int64
    total_ns: Int64
    self_ns: Int64
    #: Zero where no kernel was recorded.
    device_ns: Int64
    self_device_ns: Int64
    #: Zero where no memory was recorded.
    cpu_bytes: Int64
    self_cpu_bytes: Int64
    device_bytes: Int64
    self_device_bytes: Int64
    #: Zero where no formula is known.
    flops: Int64
    #: Bytes that copies, sets and collectives moved, zero where they are not known.
    moved_bytes: Int64

    #: The keys that the events were grouped by.
    keys: tuple[Key, ...] = ()

    def __len__(self) -> int:
        return len(self.first)

    def values(self, trace: Trace) -> list[tuple[Hashable, ...]]:
        """For each group a tuple of values, one for each key, that no other group of its recording has.

        Groups of two recordings with equal values are the same.
        """
        readers = [key.values(trace) for key in self.keys]
        return [tuple(read(event) for read in readers) for event in self.first.tolist()]


def group(trace: Trace, *keys: str | Key, costs: Costs | None = None, positions: Int64 | None = None) -> Groups:
    """Group the counted events of `trace` by `keys`: names in `KEYS`, or keys of your own.

    `costs` are summed, by default those of torch's rows. `positions` chooses the events and the order of the groups;
    a position that it has twice counts twice.
    """
    costs = costs or averaged_costs(trace)
    chosen = tuple(KEYS[key] if isinstance(key, str) else key for key in keys)
    columns = [key.numbers(trace) for key in chosen]
    counted: Int64 | None = None
    if positions is not None or not costs.counted.all():
        counted = np.flatnonzero(costs.counted) if positions is None else positions[costs.counted[positions]]
    code = _codes(columns, counted, len(trace))
    number, first, size = _numbered(code)
    of_event = number.astype(np.int32)
    if counted is not None:
        first = counted[first]
        of_event = np.full(len(trace), -1, np.int32)
        of_event[counted] = number
    summed = _summed(trace, costs, counted, number, of_event, first, size)
    return replace(summed, keys=chosen)


def number_combinations(columns: list[Array]) -> tuple[Int64, Int64, int]:
    """A number for each combination of values, by first appearance; the position of each first one; their count."""
    return _numbered(_codes(columns, None, len(columns[0])))


def _codes(columns: list[Array], counted: Int64 | None, length: int) -> Int64:
    """An integer for each combination of values, renumbered whenever the range exceeds a table's size."""
    size = length if counted is None else len(counted)
    code, width = np.zeros(size, np.int64), 1
    for column in columns:
        chosen = column if counted is None else column[counted]
        chosen = np.subtract(chosen, int(chosen.min(initial=0)), dtype=np.int64)
        reach = int(chosen.max(initial=0)) + 1
        if width * reach > _table_size(size):
            code, _, width = _numbered(code)
            chosen, _, reach = _numbered(chosen)
        code = code * reach + chosen
        width *= reach
    return code


def _table_size(count: int) -> int:
    return 4 * count + 65_536


def _numbered(code: Int64) -> tuple[Int64, Int64, int]:
    """Codes renumbered by first appearance, the position of each first one, and their count."""
    if not len(code):
        return code.astype(np.int64), np.empty(0, np.int64), 0
    width = int(code.max()) + 1
    if width > _table_size(len(code)):
        _, code = np.unique(code, return_inverse=True)
        width = int(code.max()) + 1
    first_of = np.full(width, -1, np.int64)
    first_of[code[::-1]] = np.arange(len(code) - 1, -1, -1)
    first = np.sort(first_of[first_of >= 0])
    number = np.empty(width, np.int64)
    number[code[first]] = np.arange(len(first))
    return number[code], first, len(first)


def _summed(
    trace: Trace, costs: Costs, counted: Int64 | None, number: Int64, of_event: Int32, first: Int64, size: int
) -> Groups:
    def total(values: Int64 | None) -> Int64:
        if values is None:
            return np.zeros(size, np.int64)
        return sums(number, values if counted is None else values[counted], size)

    memory = costs.memory
    return Groups(
        of_event=of_event,
        first=first,
        count=np.bincount(number, minlength=size),
        total_ns=total(costs.total_ns),
        self_ns=total(costs.self_ns),
        device_ns=total(costs.device_ns),
        self_device_ns=total(costs.self_device_ns),
        cpu_bytes=total(memory.cpu if memory else None),
        self_cpu_bytes=total(memory.self_cpu if memory else None),
        device_bytes=total(memory.device if memory else None),
        self_device_bytes=total(memory.self_device if memory else None),
        flops=total(None if trace.flops is None else np.maximum(trace.flops, 0)),
        moved_bytes=total(None if trace.moved_bytes is None else np.maximum(trace.moved_bytes, 0)),
    )


def sums(groups: Int8 | Int32 | Int64, values: Int64, size: int) -> Int64:
    """The sum of the values of each of `size` groups."""
    total = np.zeros(size, np.int64)
    np.add.at(total, groups, values)
    return total


def table_of_sums(row: Array, column: Array, values: Int64, shape: tuple[int, int]) -> Int64:
    """The sum of the values of each cell of a table."""
    rows, columns = shape
    return sums(row.astype(np.int64) * columns + column, values, rows * columns).reshape(shape)


def _or_nothing(column: Array | None, trace: Trace) -> Array:
    return np.full(len(trace), -1, np.int32) if column is None else column


def _renumbered(column: Array | None, table: tuple[Any, ...], key_of: Callable[[Any], Any], trace: Trace) -> Array:
    """`column`, with one number for all table entries for which `key_of` returns equal values."""
    first: dict[Any, int] = {}
    numbers = np.array([*(first.setdefault(key_of(value), index) for index, value in enumerate(table)), -1], np.int32)
    return numbers[_or_nothing(column, trace)]


def name_ids(trace: Trace) -> Array:
    """For each event the number of its name; all profiler steps share one."""
    return _renumbered(trace.name, trace.names, averaged_name, trace)


def flat_shapes(shapes: Any) -> tuple[tuple[int, ...], ...]:
    """Input shapes as in torch's averages, which have `()` for a list of tensors."""
    return tuple(() if any(isinstance(size, tuple) for size in shape) else shape for shape in shapes)


def innermost_scopes(trace: Trace) -> Int32:
    """For each event the innermost scope that it ran in (itself, if it is one), or -1."""
    nested = nesting(trace)
    scope = np.where(trace.kind == SCOPE, np.arange(len(trace), dtype=np.int32), np.int32(-1))
    for level in nested.levels()[1:]:
        inherits = level[scope[level] < 0]
        scope[inherits] = scope[nested.parent[inherits]]
    return scope


def innermost_frames(trace: Trace, count: int) -> Array:
    """For each event a number for the `count` innermost frames of its stack, -1 without a stack."""
    if trace.stack is None or trace.stacks is None or not len(trace.stacks):
        return np.full(len(trace), -1, np.int32)
    tree = trace.stacks
    number, node = np.zeros(len(tree), np.int64), np.arange(len(tree))
    for _ in range(count):
        inside: Bool = node >= 0
        if not inside.any():
            break
        frame = np.where(inside, tree.frame[node], -1) + 1
        number, _, _ = _numbered(number * (len(tree.frames) + 1) + frame)
        node = np.where(inside, tree.parent[node], -1)
    return np.append(number, -1)[trace.stack]


def _scope_names(trace: Trace) -> Array:
    return np.append(name_ids(trace), -1)[innermost_scopes(trace)]


class Key(NamedTuple):
    """A key that events can be grouped by."""

    #: A number for each event: events with equal numbers belong together.
    numbers: Callable[[Trace], Array]
    #: A function of an event that returns the value of its number, which is comparable between recordings.
    values: Callable[[Trace], Callable[[int], Hashable]]


def _entry(column: Array | None, table: Sequence[Any], write: Callable[[Any], Any] = lambda entry: entry) -> Any:
    """A function of an event that returns its entry in a table, or None."""
    return lambda event: None if column is None or column[event] < 0 else write(table[column.item(event)])


def in_table(column: str, table: str, key_of: Callable[[Any], Any] = lambda entry: entry) -> Key:
    """The key of a column that points into a table; entries for which `key_of` returns equal values are one."""
    return Key(
        lambda trace: _renumbered(getattr(trace, column), getattr(trace, table), key_of, trace),
        lambda trace: _entry(getattr(trace, column), getattr(trace, table), key_of),
    )


@once_a_trace
def stable_names(trace: Trace) -> dict[str, str]:
    """A name for each notebook cell whose text is known, made from that text: each session names its file anew."""
    names, known = {}, Counter[str]()
    for file, text in trace.sources.items():
        if is_cell(file):
            digest = sha256(text.encode(errors="surrogatepass")).hexdigest()
            names[file] = f"cell {digest} {known[digest]}"
            known[digest] += 1
    return names


def _lines(trace: Trace) -> Any:
    names, caused = stable_names(trace), attribution(trace)
    return _entry(caused.line, caused.lines, lambda line: line._replace(file=names.get(line.file, line.file)))


def frames_key(count: int) -> Key:
    """The key of the `count` innermost frames of a stack."""

    def values(trace: Trace) -> Any:
        names = stable_names(trace)

        def read(event: int) -> Hashable:
            if trace.stack is None or trace.stacks is None or trace.stack[event] < 0:
                return None
            frames = trace.stacks.stack(trace.stack.item(event))[:count]
            return tuple(frame._replace(file=names.get(frame.file, frame.file)) for frame in frames)

        return read

    return Key(lambda trace: innermost_frames(trace, count), values)


def _threads(trace: Trace) -> Any:
    """Process, name, and the number of earlier threads of that name: native numbers change from run to run."""
    names, known = [], Counter[tuple[str, str]]()
    for track in trace.tracks:
        rank = trace.processes[track.process].rank
        process = f"rank {rank}" if rank >= 0 else f"process {track.process}"
        title = f"{track.device} {track.title}" if track.device else track.title.removesuffix(f" {track.native_id}")
        names.append((process, title, known[process, title]))
        known[process, title] += 1
    return _entry(trace.track, names)


#: Keys that events can be grouped by. A key that was not recorded is -1 for all events.
KEYS = {
    "name": in_table("name", "names", averaged_name),
    "device": in_table("device", "devices"),
    "kind": Key(lambda trace: trace.kind, lambda trace: _entry(trace.kind, KINDS)),
    "overload": in_table("overload", "overloads"),
    "shapes": in_table("shape", "shapes"),
    "flat_shapes": in_table("shape", "shapes", flat_shapes),
    "types": in_table("shape", "dtypes"),
    "line": Key(lambda trace: attribution(trace).line, _lines),
    "module": in_table("module", "modules"),
    "scope": Key(_scope_names, lambda trace: _entry(_scope_names(trace), trace.names, averaged_name)),
    "thread": Key(lambda trace: trace.track, _threads),
}
