"""The cost of a mark, measured while a cell is recorded, so that it can be taken off the time of the lines."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median_low
from typing import TYPE_CHECKING, Any

import numpy as np

from mtprof_nb.capture.marks.mark_transform import LINE, MARK, Place, Places, mark_tree
from mtprof_nb.model.trace import Int64

if TYPE_CHECKING:
    from mtprof_nb.capture.marks.mark_buffers import MarkBuffers

#: Small statements as programs have them: between them, a mark costs more than where nothing else runs.
_STATEMENTS = (
    *("a = i * 3", "b = str(a)", "c = (a, b)", "d = len(c)"),
    *("e = b.upper()", "g = [a, d]", "h = g[0]", "k = max(a, h)"),
)
_PASSES = 24
_LOOP = "\n    ".join([f"for i in range({_PASSES}):", *_STATEMENTS]) + "\n"


@dataclass
class MarkCosts:
    """Nanoseconds that a mark adds from one clock reading to the next, by where the mark stands.

    The cost is the median of measurements that were made at different moments of the recording.
    """

    _cell: list[int] = field(default_factory=list)
    _function: list[int] = field(default_factory=list)

    @property
    def cell_ns(self) -> int:
        """The cost of a mark at the top level of a cell."""
        return median_low(self._cell or [0])

    @property
    def function_ns(self) -> int:
        return median_low(self._function or [0])

    def measure(self, make: Callable[[], MarkBuffers]) -> None:
        """Run some marks of each kind in buffers of their own."""
        self._cell.append(_IN_CELL.cost_ns(make()))
        self._function.append(_IN_FUNCTION.cost_ns(make()))

    def by_place(self, places: Places) -> Int64:
        """The cost of the mark of each place, in the order of the table."""
        functions = [places.functions[place.scope] for place in places.table]
        return np.array([self.cell_ns if function.is_cell else self.function_ns for function in functions], np.int64)


class _Trial:
    """Code with two equal loops: one has a mark before each statement, the other before the first statement alone."""

    def __init__(self, text: str) -> None:
        tree, places = ast.parse(text), Places()
        loops = [node for node in ast.walk(tree) if isinstance(node, ast.For)]
        lines = [loop.body[0].lineno for loop in loops]
        mark_tree(tree, places, 0, frozenset())
        first, *rest = loops[1].body
        loops[1].body = [first, *(stmt for stmt in rest if not isinstance(stmt, ast.Delete))]
        self._code = compile(tree, "<marks>", "exec")
        scope = len(places.functions) - 1
        self._firsts = [places.number(Place(0, line, scope, LINE)) for line in lines]
        # Kept, because the interpreter caches where it found a global name.
        self._builtins: dict[str, Any] = dict(vars(builtins))
        self._names: dict[str, Any] = {"__builtins__": self._builtins}

    def cost_ns(self, buffers: MarkBuffers) -> int:
        """The cost of one mark: how much longer a pass of the first loop takes, divided by the marks it has more."""
        self._builtins[MARK] = buffers.mark
        try:
            exec(self._code, self._names)  # noqa: S102 - the text of this file
        finally:
            # `unmarking` looks for marked functions on the heap, and must not find this one.
            self._builtins[MARK] = self._names["f"] = None
        (marks,) = buffers.threads()
        # The first passes are slow, before the interpreter has specialised the code.
        passes = [np.diff(marks.time_ns[marks.number == first])[_PASSES // 3 :] for first in self._firsts]
        often_ns, once_ns = map(np.median, passes)
        return max(int(often_ns - once_ns) // (len(_STATEMENTS) - 1), 0)


_IN_CELL = _Trial(_LOOP * 2)
_IN_FUNCTION = _Trial("def f():\n    " + "\n    ".join((_LOOP * 2).splitlines()) + "\nf()\n")
