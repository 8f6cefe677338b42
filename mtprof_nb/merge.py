"""Several traces as one: of several runtimes, or of several windows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np

from mtprof_nb.trace import OP, Allocations, OutsideOps, SourceLine, StackInterner, StackTree, Trace, empty_trace

T = TypeVar("T", bound=Hashable)


def merge(traces: Sequence[Trace]) -> Trace:
    """All events of `traces`, tables joined. Scalars are the first one's, the window spans all."""
    tell = (trace for trace in traces if len(trace) or trace.allocations is not None or trace.dropped)
    parts = list(tell) or list(traces[:1])
    if not parts:
        return empty_trace()
    if len(parts) == 1:
        return parts[0]
    merged = _Merger(parts)
    is_op = merged.trace.kind == OP
    return replace(merged.trace, correlation_id=np.cumsum(is_op) * is_op)


class _Merger:
    def __init__(self, parts: Sequence[Trace]) -> None:
        self._parts = parts
        self._first_event = np.cumsum([0] + [len(part) for part in parts]).tolist()
        columns: dict[str, Any] = {}
        for column in ("kind", "start_ns", "duration_ns", "phase", "sequence_nr", "step", "is_user_annotation"):
            columns[column] = self._joined(attrgetter(column), 0)
        for column in ("is_async", "device_index", "correlation_id"):
            columns[column] = self._joined(attrgetter(column), 0)
        for column in ("memory_before", "memory_after", "flops"):
            columns[column] = self._joined(attrgetter(column), -1)
        for column in ("stack_is_forward", "is_python_backward", "record_function"):
            columns[column] = self._joined(attrgetter(column), 0)
        for column, table in _POINTERS.items():
            columns[column], columns[table] = self._pointers(column, table)
        for column in ("forward", "launcher"):
            columns[column] = self._events(column)
        columns["shape"], columns["shapes"], columns["dtypes"], columns["strides"] = self._shapes()
        for column, tree in (("stack", "stacks"), ("line_stack", "line_stacks")):
            columns[column], columns[tree] = self._stacks(column, tree)
        columns["allocations"] = self._allocations(columns["devices"], columns["threads"])
        first, overheads = parts[0], [part.overhead_ns for part in parts]
        self.trace = replace(
            first,
            **columns,
            hooks=tuple(dict.fromkeys(hook for part in parts for hook in part.hooks)),
            began_ns=min(part.began_ns for part in parts),
            ended_ns=max(part.ended_ns for part in parts),
            windows=tuple(sorted({window for part in parts for window in part.windows})),
            dropped=sum(part.dropped for part in parts),
            dropped_exactly=all(part.dropped_exactly for part in parts),
            overhead_ns=-1 if min(overheads) < 0 else sum(overheads),
            own_ns=sum(part.own_ns for part in parts),
            lines_note="; ".join(dict.fromkeys(part.lines_note for part in parts if part.lines_note)),
            outside=_summed([part.outside for part in parts]),
            is_partial=any(part.is_partial for part in parts),
            thread_numbers={thread: number for part in parts for thread, number in part.thread_numbers.items()},
            sources={file: text for part in parts for file, text in part.sources.items()},
            metadata={key: text for part in parts for key, text in part.metadata.items()},
        ).sorted()

    def _joined(self, values: Callable[[Trace], Any], absent: Any) -> Any:
        """The column of all parts, `absent` where one has none; None if none has it."""
        found = [values(part) for part in self._parts]
        if all(column is None for column in found):
            return None
        pairs = zip(self._parts, found, strict=True)
        return np.concatenate([np.full(len(part), absent) if column is None else column for part, column in pairs])

    def _pointers(self, column: str, table: str) -> tuple[Any, tuple[Any, ...]]:
        joined: dict[Any, int] = {}
        moved = {id(part): _moved(joined, getattr(part, table)) for part in self._parts}
        return self._joined(lambda part: _follow(getattr(part, column), moved[id(part)]), -1), tuple(joined)

    def _events(self, column: str) -> Any:
        first = {id(part): start for part, start in zip(self._parts, self._first_event, strict=False)}

        def moved(part: Trace) -> Any:
            values = getattr(part, column)
            return None if values is None else np.where(values >= 0, values + first[id(part)], -1)

        return self._joined(moved, -1)

    def _shapes(self) -> tuple[Any, Any, Any, Any]:
        joined: dict[Any, int] = {}
        moved = {}
        for part in self._parts:
            strides = part.strides or ((),) * len(part.shapes)
            moved[id(part)] = _moved(joined, list(zip(part.shapes, part.dtypes, strides, strict=True)))
        shape = self._joined(lambda part: _follow(part.shape, moved[id(part)]), -1)
        shapes, dtypes, strides = (tuple(entry[place] for entry in joined) for place in range(3))
        return shape, shapes, dtypes, strides if any(strides) else ()

    def _stacks(self, column: str, tree: str) -> tuple[Any, Any]:
        interner = StackInterner()
        moved = {}
        for part in self._parts:
            nodes: list[int] = []
            stacks: StackTree | None = getattr(part, tree)
            if stacks is not None:
                pairs = zip(stacks.frame.tolist(), stacks.parent.tolist(), strict=True)
                for frame, parent in pairs:
                    nodes.append(interner.child(nodes[parent] if parent >= 0 else -1, stacks.frames[frame]))
            moved[id(part)] = np.array(nodes, np.int32)
        stack = self._joined(lambda part: _follow(getattr(part, column), moved[id(part)]), -1)
        return stack, None if stack is None else interner.tree()

    def _allocations(self, devices: tuple[str, ...], threads: tuple[Any, ...]) -> Allocations | None:
        found = [
            (part.allocations, first, part)
            for part, first in zip(self._parts, self._first_event, strict=False)
            if part.allocations is not None
        ]
        if not found:
            return None
        moved = (
            replace(
                rows,
                event=np.where(rows.event >= 0, rows.event + first, -1),
                device=_follow(rows.device, np.array([devices.index(name) for name in part.devices])),
                thread=_follow(rows.thread, np.array([threads.index(thread) for thread in part.threads])),
            )
            for rows, first, part in found
        )
        return Allocations.joined(moved)


def _summed(parts: Sequence[Mapping[SourceLine, OutsideOps] | None]) -> dict[SourceLine, OutsideOps] | None:
    """The sums of each line over all parts; None where one does not know them."""
    found: dict[SourceLine, OutsideOps] = {}
    for part in parts:
        if part is None:
            return None
        for line, (own_ns, total_ns) in part.items():
            known = found.get(line, OutsideOps(0, 0))
            found[line] = OutsideOps(known.own_ns + own_ns, known.total_ns + total_ns)
    return found


#: Columns that point into a table, and the table.
_POINTERS = {
    "name": "names",
    "device": "devices",
    "thread": "threads",
    "overload": "overloads",
    "module": "modules",
    "line": "lines",
    "parameter": "parameters",
    "values": "value_texts",
    "extra": "extras",
}


def _moved(joined: dict[T, int], table: Sequence[T]) -> Any:
    """The positions in the joined table of the entries of `table`, which it may add."""
    return np.array([joined.setdefault(entry, len(joined)) for entry in table], np.int32)


def _follow(pointers: Any, moved: Any) -> Any:
    """`pointers` into the joined table; -1 stays."""
    if pointers is None or not len(moved):
        return pointers
    return np.where(pointers >= 0, moved[pointers], -1)
