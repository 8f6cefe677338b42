"""Small functions of a cell that are called all the time and run no op: their marks would cost more than they tell.

Nothing tells that an op ran before the recording has ended, but time does: the smallest op takes eight times as long as
the way from one mark to the next. A function that was called often, and in which hardly any of these ways took long
enough for an op, gets its plain code back while the cell runs; an op in it belongs to the line that calls it then.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import CellType, CodeType, FunctionType
from typing import Any

import numpy as np

from mtprof_nb.capture.mark_lookup import Replay
from mtprof_nb.capture.marking import ENTER, Function, Places
from mtprof_nb.trace import Int32, Int64

#: Marks that are looked at, at a time.
_SAMPLE = 1 << 11
#: An op takes at least so many times the shortest way from mark to mark.
_OP = 5
#: A line with a larger share of such ways may run ops: one in a hundred is the machine's noise.
_NOISE = 0.05
#: Calls after which a function is judged; with a smaller share of the marks it may keep them anyway.
_CALLS, _SHARE = 100, 0.02
#: Functions that are named in the note.
_NAMED = 3


class HotFunctions:
    """Looks at marks while they are made, and gives functions that need none their plain code."""

    def __init__(
        self, places: Places, namespace: Mapping[str, Any], plain_code: Callable[[], Mapping[CodeType, CodeType]]
    ) -> None:
        self._places = places
        self._namespace = namespace
        self._plain_code = plain_code
        self._replay = Replay(places, str)
        self._shortest_ns = 1 << 62
        self._calls: Counter[int] = Counter()
        #: By scope and line: how often it ran, and how often long enough for an op.
        self._runs: Counter[tuple[int, int]] = Counter()
        self._long: Counter[tuple[int, int]] = Counter()
        self._hot: set[int] = set()
        self._names: list[str] = []

    @property
    def note(self) -> str:
        """Which functions are no longer marked, "" where all are."""
        if not self._names:
            return ""
        rest = len(self._names) - _NAMED
        names = ", ".join(self._names[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")
        return f"{names}: called often and hardly ever with an op, so their ops count for the line that calls them"

    def look(self, pairs: Int64) -> None:
        """See marks that the cell's thread made in a row: their times and numbers."""
        pairs = pairs[:_SAMPLE]
        # Time says nothing where somebody is called in between, as Python's tracers are.
        if len(pairs) < _CALLS or sys.getprofile() is not None or sys.gettrace() is not None:
            return
        way_ns, number = np.diff(pairs[:, 0]), pairs[:-1, 1]
        calls = self._count_calls(number)
        if calls < _SHARE * len(pairs):
            return
        self._shortest_ns = min(self._shortest_ns, int(way_ns.min()))
        # Behind the mark of a return it is the line of the caller that runs.
        node = self._replay.nodes(number)
        marks = self._count(node, self._runs)
        self._count(node[way_ns >= _OP * self._shortest_ns], self._long)
        hot = {scope for scope, count in marks.items() if count >= _SHARE * len(pairs) and self._needs_no_marks(scope)}
        if hot - self._hot:
            self._hot |= hot
            self._unmark()

    def _count_calls(self, numbers: Int64) -> int:
        calls = 0
        for place, count in zip(self._places.table, np.bincount(numbers).tolist(), strict=False):
            if place.kind == ENTER:
                self._calls[place.scope] += count
                calls += count
        return calls

    def _count(self, nodes: Int32, counts: Counter[tuple[int, int]]) -> Counter[int]:
        """Count the lines that `nodes` stand for, and return how often each scope was among them."""
        scopes: Counter[int] = Counter()
        for node, count in zip(*(part.tolist() for part in np.unique(nodes, return_counts=True)), strict=True):
            if node >= 0:
                place = self._replay.place(node)
                counts[place.scope, place.line] += count
                scopes[place.scope] += count
        return scopes

    def _needs_no_marks(self, scope: int) -> bool:
        lines = (line for line in self._runs if line[0] == scope)
        return self._calls[scope] >= _CALLS and all(self._long[line] <= _NOISE * self._runs[line] for line in lines)

    def _unmark(self) -> None:
        functions = self._places.functions
        others = (function for scope, function in enumerate(functions) if scope not in self._hot)
        # What cannot be told apart keeps its marks: two functions of one name on one line.
        hot = {functions[scope] for scope in self._hot}.difference(others)
        plain = self._plain_code()
        for function in _functions(self._namespace):
            code = function.__code__
            if Function(code.co_name, code.co_firstlineno) in hot and code in plain:
                function.__code__ = plain[code]
                self._names.append(function.__qualname__)


def _functions(namespace: Mapping[str, Any]) -> Iterator[FunctionType]:
    """The functions of a namespace, in its classes and under decorators too; no code of the user's is run."""
    seen: set[int] = set()
    left = list(namespace.values())
    while left:
        value = left.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if type(value) is FunctionType:
            yield value
        left += _inside(value, namespace.get("__name__"))


def _inside(value: Any, module: str | None) -> list[Any]:
    """What a function, a class of `module` or a descriptor holds that may be a function."""
    kind = type(value)
    if kind is FunctionType:
        return [content for cell in value.__closure__ or () for content in _content(cell)]
    if issubclass(kind, type):
        names = _NAMES_OF_CLASS(value)
        return list(names.values()) if names.get("__module__") == module else []
    if kind is property:
        return [value.fget, value.fset, value.fdel]
    if kind in (staticmethod, classmethod, _CACHED):
        return [value.__wrapped__]
    return []


def _content(cell: CellType) -> list[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:
        return []


_CACHED = type(cache(len))
_NAMES_OF_CLASS = type.__dict__["__dict__"].__get__
