"""Marked code that outlives its cell and runs in the next one that is profiled: its marks say nothing there."""

from collections.abc import Iterator

import numpy as np
import pytest
from marked_cells import Shell, new_shell

from mtprof_nb.capture.marks.hot_functions import HotFunctions
from mtprof_nb.capture.marks.mark_transform import ENTER, LEAVE, LINE, Function, Place, Places

GENERATOR = "def rounds():\n    yield op()\n    yield op()\nrunning = rounds()\nnext(running)"


@pytest.fixture
def shell() -> Iterator[Shell]:
    with new_shell() as shell:
        yield shell


@pytest.mark.parametrize("before", [0, 30], ids=["many places are in the later cell", "many are in the earlier one"])
def test_a_generator_of_an_earlier_cell_belongs_to_the_line_that_resumes_it(shell: Shell, before: int) -> None:
    shell.run("x = 1\n" * before + GENERATOR)
    run = shell.run("op()\nif running:\n    op()\n    next(running)\n    op()\n    x = 1\nop()")

    run.result.raise_error()
    assert run.lines == [2, 4, 5, 6, 8]


def test_a_thread_of_an_earlier_cell_has_no_line(shell: Shell) -> None:
    start = "import threading\ngo = threading.Event()\ndef work():\n    go.wait()\n    op()\n    op()\n"
    shell.run(start + "thread = threading.Thread(target=work)\nthread.start()")
    run = shell.run("go.set()\nthread.join()\nop()")

    run.result.raise_error()
    assert run.lines == [None, None, 4]


def test_nothing_is_judged_by_marks_between_which_others_run() -> None:
    earlier, places = Places(), Places()
    foreign = earlier.number(Place(0, 1, earlier.add_scope(Function("rounds", 1)), LINE))
    small = places.add_scope(Function("small", 1))
    enter, leave = (places.number(Place(0, 2, small, kind)) for kind in (ENTER, LEAVE))
    unmarked: list[int] = []
    hot = HotFunctions(places, unmarked.extend, mark_ns=100)
    numbers = np.tile([enter, leave], 500)
    times = np.arange(len(numbers)) * 100

    hot.look(np.stack([times, np.where(times == 700, foreign, numbers)], 1))
    assert unmarked == []
    hot.look(np.stack([times, numbers], 1))
    assert unmarked == [small]
