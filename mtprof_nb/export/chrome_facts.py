"""What a Chrome trace says in the `args` of an event: a column of text for each fact that was recorded."""

from __future__ import annotations

import json

import numpy as np

from mtprof_nb.analysis.stacks import depths
from mtprof_nb.export.chrome_text import Column, Texts, quoted, table
from mtprof_nb.export.fixed_width import Words, choice, constant, digits, signed_digits
from mtprof_nb.trace import KERNEL, OP, PHASES, PYTHON, Bool, Int32, Int64, StackTree, Trace


class Facts:
    """The inside of the `args` of a trace's events; the keys are Kineto's where Kineto has the fact.

    It begins with the numbers, in text of fixed width; what may be of any length follows in columns of its own.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._places = table(
            f',"device_type":{quoted(device)},"phase":"{phase}"' for phase in PHASES for device in trace.devices
        )
        self._tables = _interned(trace)
        self._stacks = None if trace.stacks is None else _Stacks(trace.stacks)
        # A name of a device is a word; whatever it is, it stays one here.
        names = [quoted(device.lower()[:_LONGEST_DEVICE])[:-1] for device in trace.devices]
        self._memory_keys = [[f',{name}_memory_allocated_{what}":' for name in names] for what in _MEMORY]

    @property
    def longest(self) -> int:
        """Bytes that a stack may take."""
        return 0 if self._stacks is None else self._stacks.longest

    def numbers(self, rows: Int64) -> list[Words]:
        """Step, position in the trace, numbers of op and autograd node, flops, memory: each where there is one."""
        trace = self._trace
        found = [constant('"step":'), digits(trace.step[rows].astype(np.int64)), constant(',"Ev Idx":'), digits(rows)]
        found += self._identities(rows)
        found += _optional("Sequence number", trace.sequence_nr[rows], trace.sequence_nr[rows] < 0)
        if trace.flops is not None:
            found += _optional("flops", trace.flops[rows], trace.flops[rows] < 0)
        if trace.memory_before is not None and trace.memory_after is not None:
            found += self._memory(rows, trace.memory_before[rows], trace.memory_after[rows])
        return found

    def _memory(self, rows: Int64, before: Int64, after: Int64) -> list[Words]:
        absent = (before < 0) | (after < 0)
        if absent.all():
            return []
        device = np.where(absent, -1, self._trace.device[rows])
        values = (digits(before, absent), digits(after, absent), signed_digits(after - before, absent))
        keys = [choice(keys, device) for keys in self._memory_keys]
        return [column for pair in zip(keys, values, strict=True) for column in pair]

    def _identities(self, rows: Int64) -> list[Words]:
        """The op's own number, or for what an op launched on a device, the number of that op."""
        trace = self._trace
        kind, own = trace.kind[rows], trace.correlation_id[rows]
        if trace.launcher is None:
            return [*_optional("External id", own, own <= 0), *_optional("correlation_id", own, kind != OP)]
        launcher = trace.launcher[rows]
        number = np.where((own == 0) & (launcher >= 0), trace.correlation_id[launcher], own)
        stream = np.array([thread.native_id for thread in trace.threads], np.int64)[trace.thread[rows]]
        on_host = kind != KERNEL
        return [
            *_optional("External id", number, number <= 0),
            *_optional("correlation_id", own, kind != OP),
            *_optional("correlation", number, (kind == OP) | (number <= 0)),
            *_optional("device", trace.device_index[rows].astype(np.int64), on_host),
            *_optional("stream", stream, on_host),
        ]

    def texts(self, rows: Int64) -> list[Column]:
        """Device, phase, shapes, module, line and stack: each where it was recorded."""
        trace = self._trace
        place = trace.phase[rows].astype(np.int64) * len(trace.devices) + trace.device[rows]
        found: list[Column] = [self._places[place].tolist()]
        found += [texts[ids[rows]].tolist() for ids, texts in self._tables]
        if trace.stack is not None and self._stacks is not None:
            # A Python function's stack is the functions around it.
            found.append(self._stacks.column(np.where(trace.kind[rows] == PYTHON, -1, trace.stack[rows])))
        if trace.stack_is_forward is not None:
            found.append(_LENT[trace.stack_is_forward[rows].astype(np.int8)].tolist())
        return found


_MEMORY = ("before", "after", "delta")
_LONGEST_DEVICE = 40
_LENT = table(["", ',"Call stack is of the forward op":true'])


def _optional(key: str, values: Int64, absent: Bool) -> list[Words]:
    """`key` and value in each row, blank where `absent`; nothing where it is everywhere absent."""
    if absent.all():
        return []
    if not absent.any():
        return [constant(f',"{key}":'), digits(values)]
    return [choice([f',"{key}":'], -absent.view(np.int8)), digits(values, absent)]


def _interned(trace: Trace) -> list[tuple[Int32, Texts]]:
    """Columns that point into a table of the trace, each with the texts of that table."""
    found = []
    if trace.shape is not None:
        pairs = zip(trace.shapes, trace.dtypes, strict=True)
        found.append((trace.shape, table(_shape_text(shapes, dtypes) for shapes, dtypes in pairs)))
    if trace.module is not None:
        found.append((trace.module, table(f',"Module Hierarchy":{quoted(path)}' for path in trace.modules)))
    if trace.line is not None:
        lines = (f',"Source line":{quoted(f"{line.file}:{line.line}")}' for line in trace.lines)
        found.append((trace.line, table(lines)))
    if trace.overload is not None:
        found.append((trace.overload, table(f',"Overload":{quoted(name)}' for name in trace.overloads)))
    return found


def _shape_text(shapes: object, dtypes: object) -> str:
    dims, types = (json.dumps(value, separators=(",", ":")) for value in (shapes, dtypes))
    return f',"Input Dims":{dims},"Input type":{types}'


class _Stacks:
    """Texts of stacks, made for a chunk of rows and kept for the next one: all of them might not fit in memory."""

    def __init__(self, tree: StackTree) -> None:
        self._frame = tree.frame.tolist()
        self._parent = tree.parent.tolist()
        self._frames = [quoted(str(frame))[1:-1] for frame in tree.frames]
        self._known: dict[int, bytes] = {}
        deepest = int(depths(tree.parent).max(initial=0)) + 1
        self.longest = deepest * (max(map(len, self._frames), default=0) + 1)

    def column(self, nodes: Int32) -> Column:
        unique, where = np.unique(nodes, return_inverse=True)
        known = self._known
        self._known = {node: known[node] if node in known else self._text(node) for node in unique.tolist()}
        texts = np.empty(len(unique), object)
        texts[:] = list(self._known.values())
        column: list[bytes] = texts[where].tolist()
        return column

    def _text(self, node: int) -> bytes:
        frames = []
        while node >= 0:
            frames.append(self._frames[self._frame[node]])
            node = self._parent[node]
        return f',"Call stack":"{";".join(frames)}"'.encode("ascii") if frames else b""
