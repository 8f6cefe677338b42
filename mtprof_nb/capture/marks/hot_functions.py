"""Removes the marks from small functions that are called often and run no op: their marks cost more than they show.

While the cell runs, only the gaps between marks show that an op ran: with the smallest op, a gap is four
times as long as without, and with most ops eight times and more. A function that was called often, and in which hardly
any gap was long enough for an op, is unmarked. Its time then belongs to the line that calls it. From then on the gaps
of that line show nothing about ops of its own, so that it is judged by its gaps before.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable

import numpy as np

from mtprof_nb.capture.marks.mark_replay import Replay, own_places
from mtprof_nb.capture.marks.mark_transform import ENTER, Places
from mtprof_nb.model.trace import Int32, Int64

#: The most marks that are inspected at a time.
_SAMPLE = 1 << 11
#: A line may run ops if more than this share of its gaps is so many times as long as a gap without an op: a small op
#: nearly each time, or a usual op now and then. On a busy machine, one gap in a hundred is as long without an op.
_LIMITS = ((3, 0.3), (6, 0.02))
#: Marks and calls after which a function is judged, and the least share of all marks that is worth a removal.
_MARKS, _CALLS, _SHARE = 300, 25, 0.02
#: The least share of marks that begin a call: with less there is nothing to gain.
_CALLS_SHARE = 0.005


class HotFunctions:
    """Inspects marks while the cell runs, and has functions unmarked that run no ops."""

    def __init__(self, places: Places, unmark: Callable[[set[int]], None], mark_ns: int) -> None:
        """`unmark` takes numbers of scopes, and may leave some of them marked: those are found again.

        `mark_ns` is the cost of a mark.
        """
        self._places = places
        self._unmark = unmark
        self._mark_ns = mark_ns
        self._replay = Replay(places, str)
        self._calls: Counter[int] = Counter()
        #: By scope and line: the number of gaps, and of gaps longer than each of the limits.
        self._runs: Counter[tuple[int, int]] = Counter()
        self._long: list[Counter[tuple[int, int]]] = [Counter() for _ in _LIMITS]
        #: Lines that are no longer counted, because they call functions that were unmarked.
        self._judged: set[tuple[int, int]] = set()

    def look(self, pairs: Int64) -> None:
        """Inspect successive marks of the cell's thread: their times and numbers."""
        pairs = pairs[:_SAMPLE]
        # Gaps show nothing where a tracer of Python's is called in between.
        if len(pairs) < 2 or sys.getprofile() is not None or sys.gettrace() is not None:
            return
        places, is_own = own_places(pairs[:, 1], self._places)
        if not is_own.all():
            # Code that an earlier recording marked ran in between.
            return
        gap_ns, place = np.diff(pairs[:, 0]), places[:-1]
        if self._count_calls(place) < _CALLS_SHARE * len(pairs):
            return
        # After the mark of a return, the line of the caller runs.
        node = self._replay.nodes(place)
        marks = self._count(node, self._runs)
        without_op_ns = self._without_op_ns(gap_ns, places)
        for (times, _), long in zip(_LIMITS, self._long, strict=True):
            self._count(node[gap_ns >= without_op_ns + (times - 1) * self._mark_ns], long)
        hot = {scope for scope, count in marks.items() if count >= _SHARE * len(pairs) and self._needs_no_marks(scope)}
        if hot:
            callers = {(place.scope, place.line) for place in self._replay.callers(hot)}
            self._judged |= {line for line in callers if self._runs[line] >= _CALLS}
            self._unmark(hot)

    def _without_op_ns(self, gap_ns: Int64, places: Int32) -> int:
        """The gap after a mark where nothing runs in it."""
        # A mark at the cell's top level costs less.
        functions = [self._places.functions[place.scope] for place in self._places.table]
        is_cell = np.array([function.is_cell for function in functions], np.bool_)[places]
        between_marks = gap_ns[~is_cell[:-1] & ~is_cell[1:]]
        if len(between_marks):
            # The processor may have become faster since the cost was measured.
            short = len(between_marks) // 20
            self._mark_ns = min(self._mark_ns, int(np.partition(between_marks, short)[short]))
        return self._mark_ns

    def _count_calls(self, places: Int32) -> int:
        calls = 0
        for place, count in zip(self._places.table, np.bincount(places).tolist(), strict=False):
            if place.kind == ENTER:
                self._calls[place.scope] += count
                calls += count
        return calls

    def _count(self, nodes: Int32, counts: Counter[tuple[int, int]]) -> Counter[int]:
        """Add the lines of `nodes` to `counts`; return how often each scope was among them."""
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
        """Whether too many gaps of the line were long. One more is allowed, for the first run is slow."""
        pairs = zip(_LIMITS, self._long, strict=True)
        return any(long[line] > share * self._runs[line] + 1 for (_, share), long in pairs)
