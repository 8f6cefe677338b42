"""Groups of events and their summed costs, computed on whole columns."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mtprof_nb.analysis.costs import Costs, averaged_costs, averaged_name
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.nesting import nesting
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

    #: The names of the keys that the events were grouped by.
    keys: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.first)

    def values(self, trace: Trace) -> list[tuple[Hashable, ...]]:
        """For each group a value for each key; groups of two recordings with equal values are the same."""
        readers = [KEYS[key].values(trace) for key in self.keys]
        return [tuple(read(event) for read in readers) for event in self.first.tolist()]


def group(trace: Trace, *keys: str | Array, costs: Costs | None = None, positions: Int64 | None = None) -> Groups:
    """Group the counted events of `trace` by `keys`: names in `KEYS`, or columns of integers.

    `costs` are summed, by default those of torch's rows. `positions` chooses the events and the order of the groups;
    a position that it has twice counts twice.
    """
    costs = costs or averaged_costs(trace)
    columns = [KEYS[key].numbers(trace) if isinstance(key, str) else np.asarray(key) for key in keys]
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
    return replace(summed, keys=tuple(key for key in keys if isinstance(key, str)))


def numbered_alike(columns: list[Array]) -> tuple[Int64, Int64, int]:
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
    )


def sums(groups: Int8 | Int32 | Int64, values: Int64, size: int) -> Int64:
    """The sum of the values of each of `size` groups."""
    total = np.zeros(size, np.int64)
    np.add.at(total, groups, values)
    return total


def _or_nothing(column: Array | None, trace: Trace) -> Array:
    return np.full(len(trace), -1, np.int32) if column is None else column


def _renumbered(column: Array | None, table: tuple[Any, ...], alike: Callable[[Any], Any], trace: Trace) -> Array:
    """`column`, with one number for all table entries for which `alike` returns equal values."""
    first: dict[Any, int] = {}
    numbers = np.array([*(first.setdefault(alike(value), index) for index, value in enumerate(table)), -1], np.int32)
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

    #: A number for each event: events with equal numbers are alike.
    numbers: Callable[[Trace], Array]
    #: A function of an event that returns the value of its number, which is comparable between recordings.
    values: Callable[[Trace], Callable[[int], Hashable]]


def _entry(column: Array | None, table: Sequence[Any], write: Callable[[Any], Any] = lambda entry: entry) -> Any:
    """A function of an event that returns its entry in a table, or None."""
    return lambda event: None if column is None or column[event] < 0 else write(table[column.item(event)])


#: Keys that events can be grouped by. A key that was not recorded is -1 for all events.
KEYS = {
    "name": Key(name_ids, lambda trace: _entry(trace.name, trace.names, averaged_name)),
    # A kernel and an op of the same name and device are different groups.
    "device": Key(
        lambda trace: trace.device * np.int16(2) + trace.on_device, lambda trace: _entry(trace.device, trace.devices)
    ),
    "kind": Key(lambda trace: trace.kind, lambda trace: _entry(trace.kind, KINDS)),
    "overload": Key(
        lambda trace: _or_nothing(trace.overload, trace), lambda trace: _entry(trace.overload, trace.overloads)
    ),
    "shapes": Key(
        lambda trace: _renumbered(trace.shape, trace.shapes, lambda shapes: shapes, trace),
        lambda trace: _entry(trace.shape, trace.shapes),
    ),
    "flat_shapes": Key(
        lambda trace: _renumbered(trace.shape, trace.shapes, flat_shapes, trace),
        lambda trace: _entry(trace.shape, trace.shapes, flat_shapes),
    ),
    "line": Key(
        lambda trace: attribution(trace).line, lambda trace: _entry(attribution(trace).line, attribution(trace).lines)
    ),
    "module": Key(lambda trace: _or_nothing(trace.module, trace), lambda trace: _entry(trace.module, trace.modules)),
    "scope": Key(_scope_names, lambda trace: _entry(_scope_names(trace), trace.names, averaged_name)),
    "thread": Key(lambda trace: trace.track, lambda trace: lambda event: trace.track_title(trace.track.item(event))),
}
