"""Small functions of the user's that are called all the time and run no op: their lines cost more than they tell.

Nothing tells that an op ran before the recording has ended, but time does: with the smallest op there is, the way from
one mark to the next takes four times as long as without, and with most ops eight times and more. A function that was
called often, and in which hardly any way took long enough for an op, is unmarked while the cell runs; what it runs
belongs to the line that calls it then. How long that line takes from then on says nothing about ops of its own: it is
judged by what was seen of it before.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable

import numpy as np

from mtprof_nb.capture.marks.mark_replay import Replay, own_places
from mtprof_nb.capture.marks.mark_transform import ENTER, Places
from mtprof_nb.model.trace import Int32, Int64

#: Marks that are looked at, at a time.
_SAMPLE = 1 << 11
#: A line may run ops where ways so many times as long as without have more than this share: some small op nearly each
#: time, or a usual one now and then. On a busy machine, one way in a hundred is as long without an op.
_LIMITS = ((3, 0.3), (6, 0.02))
#: Marks and calls after which a function is judged; with a smaller share of all marks it may keep its own anyway.
_MARKS, _CALLS, _SHARE = 300, 25, 0.02
#: Where a smaller share of all marks begins a call, there is nothing to gain.
_CALLS_SHARE = 0.005


class HotFunctions:
    """Looks at marks while they are made, and has functions unmarked that need none."""

    def __init__(self, places: Places, unmark: Callable[[set[int]], None], mark_ns: int, told_ns: int) -> None:
        """`unmark` takes scopes: as many as it can. What it leaves marked is found again.

        `mark_ns` is what a mark costs, `told_ns` what it costs to be told of a line by Python.
        """
        self._places = places
        self._unmark = unmark
        self._mark_ns = mark_ns
        self._told_ns = told_ns
        self._replay = Replay(places, str)
        self._calls: Counter[int] = Counter()
        #: By scope and line: how often it ran, and how often longer than each of the limits.
        self._runs: Counter[tuple[int, int]] = Counter()
        self._long: list[Counter[tuple[int, int]]] = [Counter() for _ in _LIMITS]
        #: Lines that are counted no more, because they call functions that were unmarked.
        self._judged: set[tuple[int, int]] = set()

    def look(self, pairs: Int64) -> None:
        """See marks that the cell's thread made in a row: their times and numbers."""
        pairs = pairs[:_SAMPLE]
        # Time says nothing where somebody is called in between, as Python's tracers are.
        if len(pairs) < 2 or sys.getprofile() is not None or sys.gettrace() is not None:
            return
        places, is_own = own_places(pairs[:, 1], self._places)
        if not is_own.all():
            # Code that an earlier recording marked is running in between.
            return
        way_ns, place = np.diff(pairs[:, 0]), places[:-1]
        if self._count_calls(place) < _CALLS_SHARE * len(pairs):
            return
        # Behind the mark of a return it is the line of the caller that runs.
        node = self._replay.nodes(place)
        marks = self._count(node, self._runs)
        without_op_ns = self._without_op_ns(way_ns, places)
        for (times, _), long in zip(_LIMITS, self._long, strict=True):
            self._count(node[way_ns >= without_op_ns + (times - 1) * self._mark_ns], long)
        hot = {scope for scope, count in marks.items() if count >= _SHARE * len(pairs) and self._needs_no_marks(scope)}
        if hot:
            callers = {(place.scope, place.line) for place in self._replay.callers(hot)}
            self._judged |= {line for line in callers if self._runs[line] >= _CALLS}
            self._unmark(hot)

    def _without_op_ns(self, way_ns: Int64, places: Int32) -> Int64:
        """How long the way from each mark to the next takes where nothing runs in between."""
        functions = [self._places.functions[place.scope] for place in self._places.table]
        is_told = np.array([not function.is_marked for function in functions], np.bool_)[places]
        is_told = is_told[:-1] | is_told[1:]
        # A mark at a cell's own level costs less.
        is_cell = np.array([function.is_cell for function in functions], np.bool_)[places]
        between_marks = way_ns[~is_told & ~is_cell[:-1] & ~is_cell[1:]]
        if len(between_marks):
            # The processor may have become faster since the cost was measured.
            short = len(between_marks) // 20
            self._mark_ns = min(self._mark_ns, int(np.partition(between_marks, short)[short]))
        return np.where(is_told, self._told_ns, self._mark_ns)

    def _count_calls(self, places: Int32) -> int:
        calls = 0
        for place, count in zip(self._places.table, np.bincount(places).tolist(), strict=False):
            if place.kind == ENTER:
                self._calls[place.scope] += count
                calls += count
        return calls

    def _count(self, nodes: Int32, counts: Counter[tuple[int, int]]) -> Counter[int]:
        """Count the lines that `nodes` stand for, and return how often each scope was among them."""
        scopes: Counter[int] = Counter()
        for node, count in enumerate(np.bincount(nodes + 1).tolist(), -1):
            if node >= 0 and count:
                place = self._replay.place(node)
                if (place.scope, place.line) not in self._judged:
                    counts[place.scope, place.line] += count
                scopes[place.scope] += count
        return scopes

    def _needs_no_marks(self, scope: int) -> bool:
        lines = [line for line in self._runs if line[0] == scope]
        is_known = self._calls[scope] >= _CALLS and sum(self._runs[line] for line in lines) >= _MARKS
        return is_known and not any(map(self._may_run_ops, lines))

    def _may_run_ops(self, line: tuple[int, int]) -> bool:
        """Whether it took so long too often; once is no sign, for the first time is slow."""
        pairs = zip(_LIMITS, self._long, strict=True)
        return any(long[line] > share * self._runs[line] + 1 for (_, share), long in pairs)
