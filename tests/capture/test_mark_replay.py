"""Lines of ops, and the time of lines outside ops, from marks made by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from traces import event, make_trace

from mtprof_nb.capture.marks.mark_buffers import MarkBuffers
from mtprof_nb.capture.marks.mark_replay import marked_lines, with_end
from mtprof_nb.capture.marks.mark_transform import ENTER, LEAVE, LINE, Function, Place, Places
from mtprof_nb.model.trace import OutsideOps, SourceLine


def test_time_outside_ops_belongs_to_the_innermost_line_that_was_running() -> None:
    places, buffers = Places(), MarkBuffers(print)
    module, called = (places.add_scope(Function(name, 1)) for name in ("<module>", "f"))
    one, two = (places.number(Place(0, line, module, LINE)) for line in (1, 2))
    enter, inside, leave = (places.number(Place(0, 7, called, kind)) for kind in (ENTER, LINE, LEAVE))
    marks = [(1_000, one), (2_000, two), (3_000, enter), (3_100, inside), (3_600, leave), (5_000, one), (9_000, two)]
    buffers._buffers[0].items.extend(number for mark in marks for number in mark)
    buffers.ended_ns = 20_000
    here = buffers.cell_thread
    trace = make_trace(
        [
            event("early", 1_200, 1_500, thread=here),
            event("outer", 3_200, 3_500, thread=here),
            event("inner", 3_300, 3_400, thread=here),
            # Of another thread: while it runs, the cell's own waits in ops as well.
            event("elsewhere", 3_450, 4_000, thread=here + 1),
            event("late", 9_500, 10_000, thread=here),
            event("frame", 9_100, 9_900, kind="python", thread=here),
            event("awaited", 10_500, 11_500, is_async=True, thread=here),
        ],
        began_ns=1_100,
        ended_ns=12_000,
    )
    one_ns = (2_000 - 1_100 - 300) + (9_000 - 5_000)
    two_ns = (3_000 - 2_000) + (5_000 - 4_000) + (12_000 - 9_000 - 500)
    times = {1: (one_ns, one_ns), 2: (two_ns, two_ns + 200), 7: (200, 200)}
    expected = {("cell", line): OutsideOps(*spent) for line, spent in times.items()}
    found = marked_lines(trace, buffers, places, ["cell"], np.asarray)["outside"]

    assert found == expected
    assert sum(one.own_ns for one in expected.values()) == (12_000 - 1_100) - 300 - 800 - 500
    buffers.ended_ns = 9_700
    given_up = marked_lines(trace, buffers, places, ["cell"], np.asarray)["outside"]
    assert given_up == {**expected, ("cell", 2): OutsideOps(two_ns - 2_000, two_ns - 2_000 + 200)}


def test_what_marks_and_the_profilers_own_work_take_is_told_for_each_line_and_is_no_time_of_the_program() -> None:
    places, buffers = Places(), MarkBuffers(print)
    module = places.add_scope(Function("<module>", 1))
    head, call = (places.number(Place(0, line, module, LINE)) for line in (1, 2))
    marks = [(1_000, head), (1_100, call), (1_600, head), (1_700, call), (2_500, head)]
    buffers._buffers[0].items.extend(number for mark in marks for number in mark)
    buffers.costs._cell.append(60)
    # A look at the marks meanwhile, and the end of the cell.
    buffers.own += [(1_800, 2_100), (2_600, 3_000)]
    buffers.ended_ns = 3_000
    trace = make_trace([event("a", 1_200, 1_300)], began_ns=900, ended_ns=3_000, own_ns=40)

    found = marked_lines(trace, buffers, places, ["cell"], np.asarray)

    head_ns, call_ns = (100 - 60) + (100 - 60) + (100 - 30), (500 - 100 - 60) + (800 - 300 - 60)
    assert found["outside"] == {
        ("cell", 1): OutsideOps(head_ns, head_ns, 60 + 60 + 30 + 400),
        ("cell", 2): OutsideOps(call_ns, call_ns, 60 + 60 + 300),
    }
    # Before the first mark, 40 ns of the start and half of that mark's cost.
    assert found["own_ns"] == 40 + 30 + 550 + 420
    assert found["own_ns"] + head_ns + call_ns + (100 - 40 - 30) + 100 == 3_000 - 900


@pytest.mark.parametrize("missing", [{"dropped": 3}, {"dropped_exactly": False}, {"is_partial": True}])
def test_where_ops_are_missing_nobody_knows_the_time_outside_ops(missing: dict[str, Any]) -> None:
    places, buffers = Places(), MarkBuffers(print)
    number = places.number(Place(0, 4, places.add_scope(Function("<module>", 1)), LINE))
    buffers._buffers[0].items.extend([5, number])
    trace = make_trace([event("a", 10, 20)], ended_ns=10**9)

    assert marked_lines(trace, buffers, places, ["cell"], np.asarray)["outside"] is not None
    assert marked_lines(replace(trace, **missing), buffers, places, ["cell"], np.asarray)["outside"] is None


def test_time_while_no_marked_line_ran_belongs_to_none() -> None:
    places, buffers = Places(), MarkBuffers(print)
    called = places.add_scope(Function("f", 1))
    enter, leave = (places.number(Place(0, 7, called, kind)) for kind in (ENTER, LEAVE))
    buffers._buffers[0].items.extend([1_000, enter, 1_300, leave])
    buffers.ended_ns = 9_000
    trace = make_trace([event("a", 5_000, 5_001)], began_ns=0, ended_ns=9_000)

    assert marked_lines(trace, buffers, places, ["cell"], np.asarray)["outside"] == {("cell", 7): OutsideOps(300, 300)}


def test_a_backward_op_on_a_thread_of_the_engine_has_the_line_that_waits_for_it() -> None:
    places, buffers = Places(), MarkBuffers(print)
    number = places.number(Place(0, 4, places.add_scope(Function("<module>", 1)), LINE))
    buffers._buffers[0].items.extend([5, number])
    trace = make_trace(
        [
            event("a", 10, 20, thread=1, phase="backward"),
            event("b", 20, 30, thread=1),
        ]
    )

    assert marked_lines(trace, buffers, places, ["cell"], np.asarray)["line"].tolist() == [0, -1]


def test_a_line_behind_the_end_of_a_cell_is_the_profilers() -> None:
    last, behind = SourceLine("cell.py", 2), SourceLine("cell.py", 3)
    outside = {last: OutsideOps(50, 50, 1), behind: OutsideOps(40, 40, 7)}

    found = with_end({"outside": outside, "own_ns": 100, "overhead_ns": -1}, {"cell.py": "%%mtprofile -r\nx = 1\n"})

    assert found["outside"] == {last: OutsideOps(50, 50, 1), behind: OutsideOps(0, 0, 47)}
    assert (found["own_ns"], found["overhead_ns"]) == (140, -1)
    assert with_end({"outside": None, "own_ns": 1, "overhead_ns": 1}, {"cell.py": ""})["outside"] is None
