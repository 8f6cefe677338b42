"""The profiler's own time is no line's: marks, their packing, the start and the end of a recording."""

import ast
import builtins
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from traces import event, make_trace

from mtprof_nb.capture.marks import mark_buffers, mark_costs
from mtprof_nb.capture.marks import mark_replay as mark_lookup
from mtprof_nb.capture.marks.mark_buffers import MarkBuffers
from mtprof_nb.capture.marks.mark_costs import MarkCosts
from mtprof_nb.capture.marks.mark_replay import marked_lines
from mtprof_nb.capture.marks.mark_transform import LINE, MARK, Function, Place, Places, mark_tree
from mtprof_nb.model.merge import merge
from mtprof_nb.model.trace import Collections, Samples, Trace, Track

READING = 200


class FakeClock:
    """A clock that moves when it is read, as if that were all that a mark takes, and when the program works."""

    now_ns = 0

    def read(self) -> int:
        self.now_ns += READING
        return self.now_ns

    def work(self, time_ns: int) -> None:
        self.now_ns += time_ns


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    fake = FakeClock()
    monkeypatch.setattr(time, "perf_counter_ns", fake.read)
    monkeypatch.setattr(time, "time_ns", lambda: fake.now_ns)
    return fake


def marked_run(clock: FakeClock, text: str) -> Trace:
    """A program run with marks, and what its recording knows."""
    places, tree = Places(), ast.parse(text)
    mark_tree(tree, places, 0, frozenset())
    buffers = MarkBuffers(callable, lambda _pairs: None)
    buffers.measure_costs()
    began_ns = clock.now_ns
    names: dict[str, Any] = {"__builtins__": {**vars(builtins), MARK: buffers.mark}, "work": clock.work}
    exec(compile(tree, "cell", "exec"), names)
    # No marked function is left, in the way of those who look for such.
    names.clear()
    buffers.ended_ns = ended_ns = clock.now_ns
    trace = make_trace([], began_ns=began_ns, ended_ns=ended_ns)
    return replace(trace, **marked_lines(trace, buffers, places, ["cell"], np.asarray))


def times(trace: Trace) -> dict[int, int]:
    assert trace.outside is not None
    return {place.line: spent.own_ns for place, spent in trace.outside.items()}


def unmarked_ns(trace: Trace) -> int:
    """Neither a line's nor the profiler's: here, what the clock was read before the first mark."""
    return trace.ended_ns - trace.began_ns - sum(times(trace).values()) - trace.own_ns


def test_a_line_has_the_time_that_it_would_have_had_without_marks(clock: FakeClock) -> None:
    loop = "for i in range(50):\n    work(30)\n    work(700)\n"
    trace = marked_run(clock, f"{loop}def f():\n    work(5)\n    work(11)\nfor i in range(9): f()\n")
    found = times(trace)

    assert (found[2], found[3], found[5], found[6]) == (50 * 30, 50 * 700, 9 * 5, 9 * 11)
    assert sum(found.values()) == 50 * 730 + 9 * 16
    assert unmarked_ns(trace) == READING + READING // 2


def test_packing_and_measuring_are_the_profilers(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mark_buffers, "FIRST_PACKING", 512)
    monkeypatch.setattr(mark_buffers, "PACKING", 512)
    count = 4_000
    trace = marked_run(clock, f"for i in range({count}):\n    work(30)\n")
    packings = count // 512

    # The reading of the clock before each packing is between the line and it.
    assert 0 <= times(trace)[2] - count * 30 <= (packings + 1) * READING
    assert unmarked_ns(trace) == READING + READING // 2


def recording(
    marks: list[tuple[int, int]],
    own: list[tuple[int, int]],
    costs: MarkCosts,
    collections: Collections | None = None,
    samples: Samples | None = None,
    **window: int,
) -> Trace:
    """Marks of a cell's lines by hand: a time and a line each."""
    places, buffers = Places(), MarkBuffers(callable)
    module = places.add_scope(Function("<module>", 1))
    numbers = {line: places.number(Place(0, line, module, LINE)) for _, line in marks}
    buffers._buffers[0].items.extend(part for time_ns, line in marks for part in (time_ns, numbers[line]))
    buffers.ended_ns, buffers.own, buffers.costs = 99_000, own, costs
    ops = [event("a", 5_100, 5_900, thread=buffers.cell_thread)]
    trace = make_trace(ops, collections=collections, **window)
    trace = replace(trace, samples=samples, tracks=(*trace.tracks, Track(1, "other")))
    return replace(trace, **marked_lines(trace, buffers, places, ["cell"], np.asarray))


@pytest.mark.parametrize("gaps_at_a_time", [1, 2, 3, 4, 5, 100])
def test_no_line_has_less_than_no_time_and_all_sums_add_up(
    gaps_at_a_time: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mark_lookup, "_GAPS", gaps_at_a_time)
    costs = MarkCosts([300], [900])
    window = {"began_ns": 1_000, "ended_ns": 9_000, "own_ns": 500, "overhead_ns": 600}
    # Line 3 takes less than a mark does; line 4 is in an op and in the profiler's own work, up to the end.
    trace = recording(
        [(2_000, 1), (4_000, 2), (5_000, 3), (5_050, 4)], [(1_500, 1_800), (8_000, 50_000)], costs, **window
    )

    assert times(trace) == {1: 2_000 - 300, 2: 1_000 - 300, 3: 0, 4: (8_000 - 5_050) - 800 - 150}
    unmarked_ns = (2_000 - 1_800) - 150
    assert trace.own_ns == 8_000 - 800 - unmarked_ns - sum(times(trace).values())
    assert trace.overhead_ns == 100 + trace.own_ns


def test_marks_that_cost_less_than_usual_make_up_for_those_that_cost_more() -> None:
    # Two lines in turns; from one mark to the next, 250 ns and 450 ns pass in turns of two.
    gaps = [250, 250, 450, 450] * 5
    marks = [(6_000 + sum(gaps[:index]), 1 + index % 2) for index in range(len(gaps))]
    trace = recording([*marks, (13_000, 3)], [], MarkCosts([300]), began_ns=6_000, ended_ns=13_300)

    assert times(trace) == {1: 5 * (250 + 450 - 600), 2: 5 * (250 + 450 - 600), 3: 150}
    assert trace.own_ns == 7_300 - sum(times(trace).values())


def test_a_mark_costs_what_it_adds_to_a_pass_of_a_loop(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    # The statements between the marks work, with marks and without.
    monkeypatch.setitem(mark_costs._IN_CELL._builtins, "str", lambda number: clock.work(700) or str(number))
    costs = MarkCosts()
    costs.measure(lambda: MarkBuffers(callable))

    assert (costs.cell_ns, costs.function_ns) == (READING, READING)


def test_a_garbage_collection_in_the_profilers_own_work_is_none_of_the_program() -> None:
    found = Collections(start_ns=[3_000, 7_500, 7_900], duration_ns=[9] * 3, generation=[0] * 3, track=[0] * 3)
    window = {"began_ns": 2_000, "ended_ns": 9_000}

    trace = recording([(2_000, 1)], [(2_900, 3_100), (7_000, 7_900)], MarkCosts(), found, **window)

    assert trace.collections is not None
    assert trace.collections.start_ns.tolist() == [7_900]


def test_a_sample_of_the_cells_thread_in_the_profilers_own_work_is_none_of_the_program() -> None:
    moments, track = [2_500, 3_000, 3_000, 7_500, 7_900], [0, 0, 1, 0, 0]
    found = Samples(moments, moments, track, [-1] * 5, [False] * 5)
    window = {"began_ns": 2_000, "ended_ns": 9_000}

    # The first part of a cell begins with the recording, and is noted when it has been compiled.
    trace = recording([(2_000, 1)], [(7_000, 7_900), (2_900, 3_100)], MarkCosts(), samples=found, **window)

    assert trace.samples is not None
    assert list(zip(trace.samples.time_ns.tolist(), trace.samples.track.tolist(), strict=True)) == [
        *((2_500, 0), (3_000, 1), (7_900, 0)),
    ]


def test_a_window_that_begins_in_the_middle_of_a_line_takes_its_start_from_that_line() -> None:
    trace = recording([(1_000, 1), (7_000, 2)], [], MarkCosts(), began_ns=2_000, ended_ns=8_000, own_ns=1_500)

    assert times(trace) == {1: 5_000 - 1_500 - 800, 2: 1_000}
    assert trace.own_ns == 1_500


def test_the_cost_of_a_mark_is_the_middle_of_what_was_measured() -> None:
    costs = MarkCosts([400, 190, 200], [500, 230])

    assert (costs.cell_ns, costs.function_ns, MarkCosts().cell_ns) == (200, 230, 0)


def test_windows_add_their_own_times_up() -> None:
    parts = [make_trace([event("a", start, start + 1)], own_ns=20) for start in (0, 5)]

    assert merge(parts).own_ns == 40
