"""The cost of a line mark, measured on this machine while a cell is recorded: the profiler's, and not a line's."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np

from mtprof_nb.capture.marking import MARK, Places, mark_tree
from mtprof_nb.trace import Int64

if TYPE_CHECKING:
    from mtprof_nb.capture.mark_buffers import MarkBuffers

#: Statements that are marked and run nothing, in a loop that the interpreter learns to run fast.
_STATEMENTS, _PASSES = 8, 24
_LOOP = f"for _ in range({_PASSES}):\n" + "    if 0: pass\n" * _STATEMENTS
_FUNCTION = "def f():\n" + "".join(f"    {line}\n" for line in _LOOP.splitlines()) + "f()\n"


@dataclass
class MarkCosts:
    """Nanoseconds that a mark adds from one clock reading to the next, by where the mark stands.

    One measurement takes the lower quartile of many marks, which no interruption reaches. The cost is the median of
    the measurements, which were made at different moments of the recording.
    """

    _cell: list[int] = field(default_factory=list)
    _function: list[int] = field(default_factory=list)
    #: For a line that Python tells of.
    told_ns: int = 0

    @property
    def cell_ns(self) -> int:
        """The cost of a mark at a cell's own level."""
        return _median(self._cell)

    @property
    def function_ns(self) -> int:
        """The cost of a mark in a function."""
        return _median(self._function)

    def measure(self, make: Callable[[], MarkBuffers]) -> None:
        """Run some marks of each kind in buffers of their own."""
        self._cell.append(_gap_ns(_CELL_CODE, make()))
        self._function.append(_gap_ns(_FUNCTION_CODE, make()))

    def by_place(self, places: Places) -> Int64:
        """The cost of the mark of each place, in the order of the table."""
        functions = [places.functions[place.scope] for place in places.table]
        costs = [
            self.told_ns if not function.is_marked else self.cell_ns if function.is_cell else self.function_ns
            for function in functions
        ]
        return np.array(costs, np.int64)


def _median(measured: list[int]) -> int:
    return sorted(measured)[(len(measured) - 1) // 2] if measured else 0


def _marked_code(text: str) -> CodeType:
    tree = ast.parse(text)
    mark_tree(tree, Places(), 0, frozenset())
    return compile(tree, "<marks>", "exec")


_CELL_CODE, _FUNCTION_CODE = _marked_code(_LOOP), _marked_code(_FUNCTION)


def _gap_ns(code: CodeType, buffers: MarkBuffers) -> int:
    """The time from one mark to the next where nothing runs in between; the way back to the loop's first is none."""
    names: dict[str, Any] = {"__builtins__": {**vars(builtins), MARK: buffers.mark}}
    exec(code, names)  # noqa: S102 - the text above, and nobody else's
    # The marked function is gone then, and not in the way of those who look for marks that were left.
    names.clear()
    (marks,) = buffers.threads()
    gaps = np.diff(marks.time_ns)[np.diff(marks.number) > 0]
    # The first passes are slow, for the interpreter has yet to learn them.
    return int(np.percentile(gaps[len(gaps) // 3 :], 25)) if len(gaps) else 0
