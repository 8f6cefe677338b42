"""Small functions of the user's that are called all the time and run no op: their lines cost more than they tell.

Nothing tells that an op ran before the recording has ended, but time does: the smallest op takes eight times as long as
the way from one mark to the next. A function that was called often, and in which hardly any of these ways took long
enough for an op, is unmarked while the cell runs; an op in it belongs to the line that calls it then.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable

import numpy as np

from mtprof_nb.capture.mark_lookup import Replay
from mtprof_nb.capture.marking import ENTER, Places
from mtprof_nb.trace import Int32, Int64

#: Marks that are looked at, at a time.
_SAMPLE = 1 << 11
#: With an op, the way from mark to mark takes at least so many times what it takes without.
_OP = 5
#: A line with a larger share of such ways may run ops: one in a hundred is the machine's noise.
_NOISE = 0.05
#: Marks and calls after which a function is judged; with a smaller share of all marks it may keep its own anyway.
_MARKS, _CALLS, _SHARE = 300, 25, 0.02
#: Functions that are named in the note.
_NAMED = 3


class HotFunctions:
    """Looks at marks while they are made, and has functions unmarked that need none."""

    def __init__(self, places: Places, unmark: Callable[[set[int]], list[str]], mark_ns: int, told_ns: int) -> None:
        """`unmark` takes scopes and returns the names of the functions that it found.

        `mark_ns` is what a mark costs, `told_ns` what it costs to be told of a line by Python.
        """
        self._places = places
        self._unmark = unmark
        self._mark_ns = mark_ns
        self._told_ns = told_ns
        self._replay = Replay(places, str)
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
        return f"{names}: called often and hardly ever with an op, so what they run counts for the line that calls them"

    def look(self, pairs: Int64) -> None:
        """See marks that the cell's thread made in a row: their times and numbers."""
        pairs = pairs[:_SAMPLE]
        # Time says nothing where somebody is called in between, as Python's tracers are.
        if len(pairs) < 2 or sys.getprofile() is not None or sys.gettrace() is not None:
            return
        way_ns, number = np.diff(pairs[:, 0]), pairs[:-1, 1]
        calls = self._count_calls(number)
        if calls < _SHARE * len(pairs):
            return
        # Behind the mark of a return it is the line of the caller that runs.
        node = self._replay.nodes(number)
        marks = self._count(node, self._runs)
        self._count(node[way_ns >= self._with_op_ns(pairs[:, 1])], self._long)
        hot = {scope for scope, count in marks.items() if count >= _SHARE * len(pairs) and self._needs_no_marks(scope)}
        if hot - self._hot:
            self._hot |= hot
            self._names += self._unmark(self._hot)

    def _with_op_ns(self, numbers: Int64) -> Int64:
        """How long the way from each mark to the next takes with an op, at least."""
        functions = self._places.functions
        is_told = np.array([not functions[place.scope].is_marked for place in self._places.table], np.bool_)[numbers]
        return _OP * self._mark_ns + self._told_ns * (is_told[:-1] | is_told[1:])

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
        lines = [line for line in self._runs if line[0] == scope]
        is_known = self._calls[scope] >= _CALLS and sum(self._runs[line] for line in lines) >= _MARKS
        return is_known and all(self._long[line] <= _NOISE * self._runs[line] for line in lines)
