"""Marks take time: neither lines nor functions have it, and their parts add up to the time of the program."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from traces import event, make_trace

from mtprof_nb.analysis.program_time.recorded_time import program_ns
from mtprof_nb.analysis.summary import summary
from mtprof_nb.model.merge import merge
from mtprof_nb.model.one_process import of_process
from mtprof_nb.model.trace import Frame, OutsideOps, Samples, SourceLine, StackInterner, Trace, Track
from mtprof_nb.tables.function_table import Functions
from mtprof_nb.tables.line_table import Lines

CELL = "<ipython-input-1>"
LOOP, CALL = Frame(CELL, 1, "<module>"), Frame(CELL, 2, "<module>")
USED, OTHER = Frame("used.py", 5, "used"), Frame("other.py", 7, "other")
SOURCES = {CELL: "for i in range(9):\n    used(i)\n", "used.py": "def used(i):\n" * 5, "other.py": "x\n" * 7}
#: Of 1,000 ns, marks and a look at them took 50 on the first line and 350 on the second, the start of the profiler 20.
MARKED = {SourceLine(CELL, 1): OutsideOps(80, 80, 50), SourceLine(CELL, 2): OutsideOps(400, 400, 350)}
OWN_NS = 20 + 50 + 350


def sampled(stacks: list[list[Frame]], tracks: list[int] | None = None, **facts: Any) -> Trace:
    """A recording of 1,000 ns with an op of 100 ns; a sample each 100 ns, with these stacks, outermost frames first."""
    trace = make_trace([event("aten::mm", 900, 1_000)], began_ns=0, ended_ns=1_000)
    interner = StackInterner()
    nodes = [interner.stack(frames) for frames in stacks]
    moments = np.arange(len(stacks)) * 100 + 50
    samples = Samples(moments, moments, tracks or [0] * len(stacks), nodes, [False] * len(stacks))
    fields = {"windows": ((0, 1_000),), "own_ns": OWN_NS, "outside": MARKED, "sources": SOURCES, **facts}
    return replace(trace, samples=samples, stacks=interner.tree(), **fields)


def functions(trace: Trace) -> dict[str, int]:
    return {row.function: row.own_ns for row in Functions(trace) if row.own_ns}


def lines(trace: Trace) -> dict[tuple[str, int], int]:
    return {(row.file, row.line): row.outside_ns or 0 for row in Lines(trace) if row.outside_ns}


def test_the_time_of_marks_is_taken_from_the_line_itself_before_what_it_called() -> None:
    # Samples see 200 ns in the loop's line, 500 in the line of the call, and 200 in the function.
    trace = sampled([[LOOP]] * 2 + [[CALL]] * 5 + [[CALL, USED]] * 2)

    found = functions(trace)

    # 180 less 50 of the loop, 500 less 350 of the call, and the function as it is, are just the time of the program.
    assert found == {"<module>": 130 + 150, "used": 200, "(unknown)": 100}
    assert sum(found.values()) == 1_000 - OWN_NS == summary(trace).wall_ns - trace.own_ns
    assert lines(trace) == {(CELL, 1): 80, (CELL, 2): 400 - 200, ("used.py", 5): 200}


def test_samples_that_saw_the_function_alone_have_no_more_time_than_the_line_that_called_it() -> None:
    trace = sampled([[CALL, USED]] * 8 + [[CALL, OTHER]])

    found, by_line = functions(trace), lines(trace)

    assert found == {"used": 426, "other": 54, "(unknown)": 100}
    assert sum(found.values()) == 1_000 - OWN_NS
    assert by_line == {(CELL, 1): 80, ("used.py", 5): 355, ("other.py", 7): 45}
    assert sum(by_line.values()) == 80 + 400
    assert sum(by_line.values()) + summary(trace).in_ops_ns <= program_ns(trace) == 1_000 - OWN_NS


def test_what_a_line_awaits_has_the_time_for_which_samples_did_not_see_that_line() -> None:
    # The event loop calls the function, and not the line that awaits it.
    trace = sampled([[LOOP]] * 2 + [[USED]] * 4 + [[CALL]] * 3)

    by_line = lines(trace)

    assert by_line[CELL, 1] == 80
    assert by_line[CELL, 2] + by_line["used.py", 5] == 400
    assert by_line["used.py", 5] == functions(trace)["used"]
    assert sum(functions(trace).values()) == 1_000 - OWN_NS


def test_where_samples_saw_no_marked_line_the_main_thread_ran_them() -> None:
    trace = sampled([[USED]] * 9)
    (process,) = trace.processes

    of_main = replace(trace, processes=(process._replace(pid=trace.tracks[0].native_id),))

    assert sum(functions(of_main).values()) == 1_000 - OWN_NS
    assert lines(of_main) == {("used.py", 5): 480}
    assert sum(lines(trace).values()) > 1_000 - OWN_NS, "of another thread nothing is known"


def test_time_of_another_thread_is_as_it_was_sampled() -> None:
    stacks = [[CALL, USED], [OTHER]] * 4
    trace = sampled(stacks, [0, 1] * 4)
    trace = replace(trace, tracks=(*trace.tracks, Track(2, "thread 2")))
    unmarked = replace(trace, outside=None, own_ns=20)

    assert functions(trace)["other"] == functions(unmarked)["other"]
    assert functions(trace)["used"] + 100 == 1_000 - OWN_NS


def test_each_of_several_processes_loses_the_time_of_its_own_marks() -> None:
    one = sampled([[CALL, USED]] * 9)
    other = replace(one, own_ns=20, outside={line: times._replace(profiler_ns=0) for line, times in MARKED.items()})
    ranks = merge([_of_rank(trace, rank) for rank, trace in enumerate((one, other))])

    assert sum(functions(ranks).values()) == (1_000 - OWN_NS) + (1_000 - 20)
    assert [sum(functions(of_process(ranks, rank)).values()) for rank in (0, 1)] == [1_000 - OWN_NS, 1_000 - 20]
    marked = ranks.outside or {}
    assert marked[SourceLine(CELL, 2)] == OutsideOps(800, 800, 350)


def _of_rank(trace: Trace, rank: int) -> Trace:
    (process,) = trace.processes
    return replace(trace, processes=(process._replace(rank=rank, pid=rank + 1),))


@pytest.mark.parametrize(("profiler_ns", "own_ns"), [(0, 20), (10**6, OWN_NS)])
def test_marks_that_took_nothing_or_more_than_samples_saw_leave_no_time_below_zero(
    profiler_ns: int, own_ns: int
) -> None:
    marked = {line: times._replace(profiler_ns=profiler_ns) for line, times in MARKED.items()}
    trace = sampled([[LOOP], [CALL], [CALL, USED]] * 3, outside=marked, own_ns=own_ns)

    assert min(row.own_ns for row in Functions(trace)) >= 0
    assert sum(functions(trace).values()) == 1_000 - own_ns


def test_time_of_a_main_thread_without_samples_is_that_of_no_known_function() -> None:
    trace = sampled([], outside=None, own_ns=20)
    of_main = replace(trace, processes=(trace.processes[0]._replace(pid=trace.tracks[0].native_id),))

    assert functions(of_main) == {"(unknown)": 1_000 - 20}
