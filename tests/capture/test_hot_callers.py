"""A function that calls unmarked ones is judged by what was seen of its lines while those still had their marks."""

from collections.abc import Iterator

import numpy as np
import pytest

from mtprof_nb.capture.marks.hot_functions import HotFunctions
from mtprof_nb.capture.marks.mark_transform import ENTER, LEAVE, LINE, Function, Place, Places
from mtprof_nb.model.trace import Int64

#: A mark costs this much.
MARK_NS = 100


class Program:
    """A cell that calls `score`, whose line 5 calls `weight`; marks by hand, each with the time to the next one."""

    def __init__(self) -> None:
        self.places = Places()
        cell, self.score, self.weight = (
            self.places.add_scope(Function(name, line)) for name, line in (("<module>", 1), ("score", 3), ("weight", 8))
        )
        self.cell_line = self._number(10, cell, LINE)
        self.enter, self.leave = self._number(4, self.score, ENTER), self._number(6, self.score, LEAVE)
        self.calling, self.header = self._number(5, self.score, LINE), self._number(4, self.score, LINE)
        self.called, self.returned = self._number(9, self.weight, ENTER), self._number(9, self.weight, LEAVE)
        self.unmarked: set[int] = set()
        self.hot = HotFunctions(self.places, self.unmarked.update, mark_ns=MARK_NS)

    def _number(self, line: int, scope: int, kind: int) -> int:
        return self.places.number(Place(0, line, scope, kind))

    def step(self, passes: int, calling_ns: int, returned_ns: int) -> Iterator[tuple[int, int]]:
        """One call of `score`: its line 5 runs so long before `weight` is entered, and so long after it was left."""
        yield from [(MARK_NS, self.cell_line), (MARK_NS, self.enter)]
        for _ in range(passes):
            yield (calling_ns, self.calling)
            if self.weight not in self.unmarked:
                yield from [(MARK_NS, self.called), (returned_ns, self.returned)]
            yield (MARK_NS, self.header)
        yield (MARK_NS, self.leave)

    def look(self, steps: int, passes: int, calling_ns: int = MARK_NS, returned_ns: int = MARK_NS) -> None:
        marks = [mark for _ in range(steps) for mark in self.step(passes, calling_ns, returned_ns)]
        gap_ns, numbers = np.array(marks).T
        times: Int64 = np.cumsum(gap_ns) - gap_ns
        self.hot.look(np.stack([times, numbers], 1))


def test_a_line_does_not_look_like_an_op_because_of_the_unmarked_function_that_it_calls() -> None:
    program = Program()
    program.look(steps=20, passes=20)
    assert program.unmarked == {program.weight}

    program.look(steps=40, passes=20, calling_ns=9 * MARK_NS)
    assert program.unmarked == {program.weight, program.score}


@pytest.mark.parametrize("op", [{"calling_ns": 9 * MARK_NS}, {"returned_ns": 9 * MARK_NS}])
def test_a_line_that_took_as_long_as_an_op_before_keeps_its_marks(op: dict[str, int]) -> None:
    program = Program()
    program.look(steps=20, passes=20, **op)
    assert program.unmarked == {program.weight}

    program.look(steps=40, passes=20, calling_ns=9 * MARK_NS)
    assert program.unmarked == {program.weight}


def test_a_line_of_which_too_little_was_seen_before_keeps_its_marks() -> None:
    program = Program()
    program.hot._calls[program.weight] = 25
    program.hot._runs[program.weight, 9] = 300
    program.look(steps=1, passes=10)
    assert program.unmarked == {program.weight}

    program.look(steps=40, passes=20, calling_ns=9 * MARK_NS)
    assert program.unmarked == {program.weight}
