"""The `args` of the events of a Chrome trace: a column of text for each recorded value."""

from __future__ import annotations

import numpy as np

from mtprof_nb.export.chrome_inputs import extra_text, shape_text, values_text
from mtprof_nb.export.chrome_joins import Joins
from mtprof_nb.export.chrome_text import RowTexts, Texts, quoted, table
from mtprof_nb.export.cut_texts import CutStacks
from mtprof_nb.export.fixed_width import Words, choice, constant, integers, signed_integers
from mtprof_nb.model.trace import OP, PYTHON, Int32, Int64, StackTree, Trace


class Facts:
    """The members of `args` of a trace's events, under Kineto's keys where Kineto has them.

    Numbers come first, as text of fixed width; texts of any length follow.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._joins = Joins(trace)
        self._tables = _interned(trace)
        self._stacks = None if trace.stacks is None else _Stacks(trace.stacks)
        # Without the closing quote, so that the key goes on.
        names = [quoted(device.lower()[:_LONGEST_DEVICE])[:-1] for device in trace.devices]
        self._memory_keys = [[f',{name}_memory_allocated_{what}":' for name in names] for what in _MEMORY]

    @property
    def longest(self) -> int:
        """The most bytes of a stack."""
        return 0 if self._stacks is None else self._stacks.longest

    def numbers(self, rows: Int64) -> list[Words]:
        """Position in the trace, numbers that other tools join by, memory."""
        trace = self._trace
        columns = [constant('"Ev Idx":'), integers(rows), *self._joins.columns(rows)]
        if trace.memory_before is not None and trace.memory_after is not None:
            columns += self._memory(rows, trace.memory_before[rows], trace.memory_after[rows])
        return columns

    def _memory(self, rows: Int64, before: Int64, after: Int64) -> list[Words]:
        absent = (before < 0) | (after < 0)
        if absent.all():
            return []
        device = np.where(absent, -1, self._trace.device[rows])
        values = (integers(before, absent), integers(after, absent), signed_integers(after - before, absent))
        keys = [choice(keys, device) for keys in self._memory_keys]
        return [column for pair in zip(keys, values, strict=True) for column in pair]

    def texts(self, rows: Int64) -> list[RowTexts]:
        """Rare numbers, and the recorded ones of shapes, values, module and stack."""
        trace = self._trace
        columns: list[RowTexts] = [self._joins.rare(rows)]
        columns += [texts[ids[rows]].tolist() for ids, texts in self._tables]
        if trace.stack is not None and self._stacks is not None:
            # The events around a Python function are its stack already.
            columns.append(self._stacks.column(np.where(trace.kind[rows] == PYTHON, -1, trace.stack[rows])))
        return columns


_MEMORY = ("before", "after", "delta")
_LONGEST_DEVICE = 40
#: Keys that a keyword of the user must not replace.
_KEYS = frozenset(
    {
        *("Ev Idx", "External id", "correlation_id", "runtime_name", "runtime_tid", "Record function id"),
        *("Sequence number", "Fwd thread id", "Input Dims", "Input type", "input_shapes"),
        *("Input Strides", "Concrete Inputs", "Module Hierarchy", "Call stack", "stack"),
    }
)
_KEYS_OF_DEVICES = frozenset({"correlation", "device", "stream"})


def _interned(trace: Trace) -> list[tuple[Int32, Texts]]:
    """Columns that index a table of the trace, each with the texts of that table."""
    tables = []
    taken = _KEYS | {f"{device.lower()}_memory_allocated_{what}" for device in trace.devices for what in _MEMORY}
    if trace.shape is not None:
        nothing = ((),) * len(trace.shapes)
        texts = [*map(shape_text, trace.shapes, trace.dtypes or nothing, trace.strides or nothing)]
        texts.append(shape_text((), (), ()))
        lacks_shapes = (trace.kind == OP) & (trace.shape < 0)
        tables.append((np.where(lacks_shapes, np.int32(len(trace.shapes)), trace.shape), table(texts)))
    if trace.values is not None:
        tables.append((trace.values, table(values_text(text, taken) for text in trace.value_texts)))
    if trace.extra is not None:
        tables.append((trace.extra, table(extra_text(text, taken | _KEYS_OF_DEVICES) for text in trace.extras)))
    if trace.module is not None:
        tables.append((trace.module, table(f',"Module Hierarchy":{quoted(path)}' for path in trace.modules)))
    return tables


class _Stacks:
    """Texts of stacks, cached from one chunk of rows to the next: all of them might not fit in memory."""

    def __init__(self, tree: StackTree) -> None:
        self._cut = CutStacks(tree, lambda frame: quoted(frame)[1:-1])
        self._known: dict[int, bytes] = {}
        # Each frame stands there twice: behind a semicolon, and as an entry of a list.
        self.longest = 2 * self._cut.longest

    def column(self, nodes: Int32) -> RowTexts:
        unique, where = np.unique(nodes, return_inverse=True)
        known = self._known
        self._known = {node: known[node] if node in known else self._text(node) for node in unique.tolist()}
        texts = np.empty(len(unique), object)
        texts[:] = list(self._known.values())
        column: list[bytes] = texts[where].tolist()
        return column

    def _text(self, node: int) -> bytes:
        frames = self._cut.frames(node)
        if not frames:
            return b""
        listed = '","'.join(frames)
        return f',"Call stack":"{";".join(frames)}","stack":["{listed}"]'.encode("ascii")
