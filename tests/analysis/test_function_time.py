"""The time of threads divided among functions, on hand-made traces with exact numbers."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from traces import event, make_trace

import mtprof_nb
from mtprof_nb.export import collapsed_stacks
from mtprof_nb.model.merge import merge
from mtprof_nb.model.records import Samples
from mtprof_nb.model.trace import Frame, OutsideOps, SourceLine, StackInterner, Trace, Track
from mtprof_nb.recording import Recording
from mtprof_nb.tables.function_table import FunctionRow, Functions
from mtprof_nb.tables.line_table import Lines
from mtprof_nb.views.page.html_page import page
from mtprof_nb.views.panel.tabs import tabs_of
from mtprof_nb.views.scene import Scene
from mtprof_nb.views.static.svg import stacks_svg
from mtprof_nb.views.tabs.stacks.stacks_tab import StacksTab, available_metrics, stack_chart
from mtprof_nb.views.tabs.summary.summary_tab import SummaryTab

MAIN, LOAD, TRAIN = Frame("run.py", 9, "<module>"), Frame("run.py", 5, "load"), Frame("run.py", 2, "train")
SOURCE = "def train():\n    step()\n\ndef load():\n    read()\n"


def sampled(trace: Trace, samples: list[tuple[Any, ...]], **fields: Any) -> Trace:
    """`trace` with samples: (moment, frames from the outermost, is_waiting, native id, when it was taken)."""
    interner = StackInterner()
    tracks = list(trace.tracks)
    rows = []
    for moment, frames, *rest in samples:
        is_waiting, native_id, taken = [*rest, *(False, 1, moment)[len(rest) :]]
        known = [track.native_id for track in tracks]
        if native_id not in known:
            tracks.append(Track(native_id, f"thread {native_id}"))
            known.append(native_id)
        rows.append((moment, taken, known.index(native_id), interner.stack(frames), is_waiting))
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return replace(
        trace,
        samples=Samples(*columns),
        stacks=interner.tree(),
        tracks=tuple(tracks),
        sources={"run.py": SOURCE},
        **fields,
    )


def by_name(trace: Trace) -> dict[str, FunctionRow]:
    return {row.function: row for row in Functions(trace)}


def of_ops(*spans: tuple[int, int], began: int = 0, ended: int = 1000) -> Trace:
    return make_trace([event("aten::mm", *span) for span in spans], began_ns=began, ended_ns=ended)


def test_without_ops_a_sample_stands_for_the_time_up_to_the_middle_between_its_neighbours() -> None:
    trace = sampled(of_ops(), [(100, [MAIN, LOAD]), (300, [MAIN, TRAIN]), (700, [MAIN, TRAIN])])

    rows = by_name(trace)

    assert (rows["load"].own_ns, rows["train"].own_ns) == (200, 800)
    assert (rows["load"].python_ns, rows["load"].ops_ns, rows["load"].waiting_ns) == (200, 0, 0)
    assert rows["<module>"].own_ns == 0
    assert rows["<module>"].total_ns == 1000


def test_own_times_sum_up_to_the_wall_time_of_the_thread_to_the_nanosecond() -> None:
    trace = sampled(of_ops((200, 300), (550, 900)), [(100, [MAIN, LOAD]), (400, [MAIN, TRAIN]), (600, [MAIN, TRAIN])])

    assert sum(row.own_ns for row in Functions(trace)) == 1000


def test_only_samples_between_ops_divide_the_time_between_ops() -> None:
    # The sample at 600 lies inside an op: it says nothing about the gaps.
    samples = [(100, [MAIN, LOAD]), (600, [MAIN, TRAIN]), (950, [MAIN, LOAD])]
    rows = by_name(sampled(of_ops((200, 900)), samples))

    assert (rows["load"].python_ns, rows["load"].ops_ns) == (300, 0)
    assert (rows["train"].python_ns, rows["train"].ops_ns) == (0, 700)


def test_ops_with_stacks_are_counted_exactly_and_not_by_samples() -> None:
    frames = [("run.py", 5, "load"), ("run.py", 9, "<module>")]
    trace = make_trace([event("aten::mm", 200, 900, stack=frames)], began_ns=0, ended_ns=1000)
    interner = StackInterner()
    node = interner.stack([MAIN, LOAD])
    trace = replace(
        trace,
        stacks=interner.tree(),
        stack=np.array([node]),
        samples=Samples([100, 600], [100, 600], [0, 0], [interner.stack([MAIN]), node], [False, False]),
    )

    rows = by_name(trace)

    assert (rows["load"].ops_ns, rows["load"].python_ns) == (700, 0)
    assert rows["<module>"].python_ns == 300
    assert rows["<module>"].total_ns == 1000


def test_waiting_is_told_from_running() -> None:
    rows = by_name(sampled(of_ops(), [(100, [MAIN, LOAD], True), (300, [MAIN, LOAD], False)]))

    assert (rows["load"].waiting_ns, rows["load"].python_ns) == (200, 800)


def test_c_code_that_no_sampler_can_interrupt_has_all_the_time_until_the_sample_was_taken() -> None:
    samples = [(100, [MAIN, TRAIN]), (200, [MAIN, LOAD], False, 1, 800), (900, [MAIN, TRAIN])]
    rows = by_name(sampled(of_ops(), samples))

    assert rows["load"].own_ns == 850 - 150


def test_a_function_that_calls_itself_counts_once_in_its_total() -> None:
    rows = by_name(sampled(of_ops(), [(100, [MAIN, LOAD, LOAD, LOAD])]))

    assert (rows["load"].total_ns, rows["load"].own_ns) == (1000, 1000)


def test_a_thread_lives_from_its_first_sample_to_its_last() -> None:
    samples = [
        *((moment, [MAIN], False, 1) for moment in (100, 300, 500, 700)),
        *((moment, [TRAIN], False, 2) for moment in (300, 500)),
    ]
    rows = by_name(sampled(of_ops(), sorted(samples, key=lambda row: row[0])))

    assert rows["<module>"].own_ns == 1000
    assert rows["train"].own_ns == 600 - 200


def test_time_between_windows_is_not_counted() -> None:
    samples = [(100, [MAIN, LOAD]), (900, [MAIN, TRAIN])]
    rows = by_name(sampled(of_ops(), samples, windows=((0, 200), (800, 1000))))

    assert (rows["load"].own_ns, rows["train"].own_ns) == (200, 200)


def test_the_error_grows_with_the_number_of_runs_and_not_with_their_length() -> None:
    one_run = [(moment, [MAIN, LOAD]) for moment in range(50, 500, 100)]
    alternating = [(moment, [MAIN, TRAIN if moment % 200 < 100 else LOAD]) for moment in range(550, 1000, 100)]
    rows = by_name(sampled(of_ops(), one_run + alternating))

    # Each run is uncertain by one sample, of 100 ns, and so is what no sample saw: load has three runs.
    assert rows["load"].error_ns == round(2 * 100 * np.sqrt(4))
    assert rows["load"].samples == 8


def test_functions_of_one_name_are_told_apart_by_where_they_begin() -> None:
    first, second = Frame("a.py", 2, "forward"), Frame("a.py", 5, "forward")
    trace = sampled(of_ops(), [(100, [first]), (900, [second]), (950, [second._replace(line=6)])])
    trace = replace(trace, sources={"a.py": "def forward():\n  f()\n\ndef forward():\n  g()\n  h()\n"})

    assert [(row.line, row.own_ns) for row in Functions(trace)] == [(1, 500), (4, 500)]


def test_without_samples_there_are_no_functions_and_the_table_says_why() -> None:
    functions = Functions(of_ops((0, 10)))

    assert list(functions) == []
    assert "with_python=True" in functions.table()


def test_a_recording_without_any_sample_knows_of_no_function() -> None:
    trace = sampled(of_ops((100, 200)), [(50, [MAIN])])
    nothing = replace(trace, samples=Samples(*(np.empty(0, np.int64) for _ in range(5))))

    assert list(Functions(nothing)) == []


def test_merged_recordings_keep_the_samples_of_both() -> None:
    one = sampled(of_ops((200, 300)), [(100, [MAIN, LOAD])])
    other = sampled(of_ops((1200, 1300), began=1000, ended=2000), [(1100, [MAIN, TRAIN])])

    rows = by_name(merge([other, one]))

    assert {name: row.total_ns for name, row in rows.items()} == {
        "load": 500,
        "train": 1300,
        "<module>": 1800,
        "(unknown)": 200,
    }


def test_the_table_marks_estimates_and_an_unknown_sort_key_is_refused() -> None:
    functions = Functions(sampled(of_ops(), [(100, [MAIN, LOAD], True)]))

    assert "~1.00 µs" in functions.table("total_ns", row_limit=1)
    assert "showing 1 of 2 functions" in functions.table("total_ns", row_limit=1)
    assert list(functions.to_dataframe().columns)[:4] == ["file", "line", "function", "own_ns"]
    with pytest.raises(AttributeError, match="own_ns, ops_ns"):
        functions.table("speed")


def test_lines_of_every_file_of_the_user_have_time_outside_ops() -> None:
    library = Frame("/usr/lib/python3.11/site-packages/pandas/core.py", 3, "read")
    trace = sampled(of_ops(), [(100, [MAIN, LOAD, library]), (300, [MAIN, LOAD]), (700, [MAIN, TRAIN], True)])

    rows = {(row.file, row.line): row for row in Lines(trace)}

    # The time of a library belongs to the user's line that called it.
    assert rows["run.py", 5].outside_ns == 500
    assert rows["run.py", 2].outside_ns == 500
    assert (rows["run.py", 9].outside_ns, rows["run.py", 9].total_ns) == (0, 1000)


def test_marks_keep_their_lines_and_samples_find_what_the_marked_lines_called() -> None:
    cell, module = Frame("<ipython-input-1>", 1, "<module>"), Frame("run.py", 5, "load")
    marked = {SourceLine("<ipython-input-1>", 1): OutsideOps(1000, 1000)}
    trace = sampled(of_ops(), [(250, [cell]), (750, [cell, module])], outside=marked)
    trace = replace(trace, sources={"<ipython-input-1>": "load()", "run.py": SOURCE})

    rows = {row.file: (row.outside_ns, row.total_ns) for row in Lines(trace)}

    assert rows == {"<ipython-input-1>": (500, 1000), "run.py": (500, 500)}


def test_functions_without_marks_of_the_marked_cell_and_of_earlier_cells_have_time_too() -> None:
    cell, earlier = "<ipython-input-2>", "<ipython-input-1>"
    top, helper, load = Frame(cell, 5, "<module>"), Frame(cell, 2, "helper"), Frame(earlier, 3, "load")
    nested = Frame(cell, 5, "<listcomp>")
    marked = {SourceLine(cell, 1): OutsideOps(0, 0), SourceLine(cell, 4): OutsideOps(1000, 1000)}
    samples = [(125, [top, nested]), (375, [top, helper]), (625, [top, helper, load]), (875, [top, nested])]
    trace = replace(sampled(of_ops(), samples, outside=marked), sources={cell: "a\n" * 5, earlier: "b\n" * 3})

    rows = {(row.file, row.line): (row.outside_ns, row.total_ns) for row in Lines(trace)}

    # The statement of line 4 goes on in line 5.
    assert rows == {(cell, 4): (0, 1000), (cell, 5): (500, 500), (cell, 2): (250, 500), (earlier, 3): (250, 250)}


def test_a_cell_that_runs_a_marked_statement_has_no_line_of_its_own() -> None:
    caller, statement = Frame("<ipython-input-1>", 1, "<module>"), Frame("<timed exec>", 1, "<module>")
    marked = {SourceLine("<timed exec>", 1): OutsideOps(1000, 1000)}
    trace = sampled(of_ops(), [(250, [caller]), (750, [caller, statement])], outside=marked)
    trace = replace(trace, sources={"<ipython-input-1>": "%mtprofile load()", "<timed exec>": "load()"})

    assert [(row.file, row.outside_ns) for row in Lines(trace)] == [("<timed exec>", 1000)]


def test_stacks_show_frames_with_ops_and_with_python_time_in_one_tree() -> None:
    trace = make_trace([event("aten::mm", 200, 900, stack=[tuple(LOAD), tuple(MAIN)])], began_ns=0, ended_ns=1000)
    interner = StackInterner()
    load, train = interner.stack([MAIN, LOAD]), interner.stack([MAIN, TRAIN])
    samples = Samples([100, 950], [100, 950], [0, 0], [load, train], [False, True])
    trace = replace(trace, stacks=interner.tree(), stack=np.array([load]), samples=samples)

    drawn = stack_chart(trace, False).chart("python")["slices"]

    found = dict(zip((label.partition("  ")[0] for label in drawn["label"]), drawn["total"], strict=True))
    assert found == {"<module>": 1000, "load": 900, "mm": 700, "train": 100}


def test_stacks_without_samples_have_no_metric_of_python_time() -> None:
    assert "python" not in available_metrics(make_trace([event("aten::mm", 0, 1, stack=[tuple(MAIN)])]))


def awake(trace: Trace, *awake_ns: int) -> Trace:
    """`trace` whose samples tell for how long their thread had been awake."""
    assert trace.samples is not None
    return replace(trace, samples=replace(trace.samples, awake_ns=np.array(awake_ns)))


def test_time_awake_tells_when_a_thread_fell_asleep_and_woke() -> None:
    samples = [(100, [MAIN, TRAIN]), (500, [MAIN, LOAD], True), (900, [MAIN, TRAIN])]

    rows = by_name(awake(sampled(of_ops(), samples), 0, 50, 350))

    # Asleep from 150 on, for 350; then for 100, and awake for 300.
    assert (rows["train"].python_ns, rows["train"].waiting_ns) == (100 + 50 + 300 + 100, 0)
    assert (rows["load"].python_ns, rows["load"].waiting_ns) == (0, 350 + 100)


def test_ops_are_no_part_of_the_time_that_python_was_awake() -> None:
    samples = [(100, [MAIN, TRAIN]), (900, [MAIN, LOAD], True)]

    rows = by_name(awake(sampled(of_ops((200, 300)), samples), 0, 150))

    assert (rows["train"].python_ns, rows["load"].waiting_ns) == (100 + 50, 650 + 100)


def test_a_sample_inside_an_op_tells_of_a_wait_for_a_processor_before_it() -> None:
    samples = [(100, [MAIN, TRAIN]), (300, [MAIN, LOAD]), (500, [MAIN, TRAIN]), (900, [MAIN, TRAIN])]
    # Awake until 500, as the sample there tells, and then asleep for 150.
    rows = by_name(awake(sampled(of_ops((450, 550)), samples), 100, 150, 500, 750))
    found = {name: (rows[name].python_ns, rows[name].waiting_ns) for name in ("load", "train")}
    assert found == {"load": (100 + 140, 60), "train": (200 + 210 + 100, 90)}


def test_a_short_sleep_between_two_samples_is_waiting() -> None:
    rows = by_name(awake(sampled(of_ops(), [(100, [MAIN, TRAIN]), (900, [MAIN, LOAD])]), 0, 600))

    assert (rows["train"].python_ns, rows["train"].waiting_ns) == (100 + 300, 100)
    assert (rows["load"].python_ns, rows["load"].waiting_ns) == (300 + 100, 100)


def test_code_that_no_sample_saw_between_two_sleeps_belongs_to_what_called_both() -> None:
    samples = [(0, [MAIN, LOAD], True), (4_000_000, [MAIN, LOAD], True), (8_000_000, [MAIN, LOAD, TRAIN], True)]

    rows = by_name(awake(sampled(of_ops(ended=8_000_000), samples), 0, 3_000_000, 5_000_000))

    assert (rows["<module>"].python_ns, rows["<module>"].waiting_ns) == (3_000_000 + 2_000_000, 0)
    assert (rows["load"].waiting_ns, rows["load"].python_ns) == (1_000_000 + 1_000_000, 0)
    assert rows["train"].waiting_ns == 1_000_000
    assert sum(row.own_ns for row in rows.values()) == 8_000_000


def test_where_time_awake_is_not_known_or_ops_take_much_of_it_samples_share_alike() -> None:
    samples = [(100, [MAIN, TRAIN]), (500, [MAIN, LOAD], True), (900, [MAIN, TRAIN])]

    rows = by_name(awake(sampled(of_ops((510, 810)), samples), 0, -1, 350))

    assert (rows["train"].python_ns, rows["load"].waiting_ns) == (300 + 190, 200 + 10)


def test_collapsed_stacks_have_time_in_ops_in_python_and_in_waiting(tmp_path: Path) -> None:
    trace = sampled(
        of_ops((2_000, 6_000), ended=20_000),
        [(1_000, [MAIN]), (3_000, [MAIN, TRAIN]), (9_000, [MAIN, LOAD]), (13_000, [MAIN, LOAD], True)],
    )

    collapsed_stacks.write(trace, tmp_path / "stacks.txt", "self_python_time_total")

    assert (tmp_path / "stacks.txt").read_text().splitlines() == [
        "run.py:9:<module> 2",
        "run.py:9:<module>;run.py:2:train 4",
        "run.py:9:<module>;run.py:5:load 14",
    ]


def test_collapsed_stacks_without_samples_name_the_flag(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="with_python=True"):
        collapsed_stacks.write(of_ops((0, 1)), tmp_path / "stacks.txt", "self_python_time_total")


def test_functions_have_their_calls_where_these_were_recorded() -> None:
    calls = ["run.py(1): train", "run.py(1): train", "run.py(4): load", "other.py(4): load"]
    rows = [event(name, at, at + 1, kind="python") for at, name in enumerate(calls)]
    samples = [(100, [MAIN, LOAD]), (300, [MAIN, TRAIN])]

    found = by_name(sampled(make_trace(rows, began_ns=0, ended_ns=1000), samples))

    assert {name: row.calls for name, row in found.items()} == {"train": 2, "load": 1, "<module>": 0}
    assert {row.calls for row in Functions(sampled(of_ops(), samples))} == {None}
    assert "Calls" in Functions(sampled(make_trace(rows, began_ns=0, ended_ns=1000), samples)).table()


def test_stacks_are_first_shown_by_the_time_that_has_all_of_the_program() -> None:
    trace = make_trace([event("aten::mm", 200, 900, stack=[tuple(LOAD), tuple(MAIN)])], began_ns=0, ended_ns=1000)
    interner = StackInterner()
    load = interner.stack([MAIN, LOAD])
    samples = Samples([100], [100], [0], [load], [False])
    trace = replace(trace, stacks=interner.tree(), stack=np.array([load]), samples=samples)

    first = StacksTab(Scene(trace)).first()

    assert (first["metric"], first["slices"]["total"][0]) == ("python", 1000)
    assert [metric["key"] for metric in first["metrics"]] == ["python", "self", "count"]
    assert "Stacks by time with Python" in stacks_svg(trace)


def test_the_overview_names_the_functions_that_took_longest_outside_ops() -> None:
    trace = sampled(of_ops((100, 300)), [(50, [MAIN, TRAIN]), (200, [MAIN, TRAIN]), (900, [MAIN, LOAD], True)])

    first = SummaryTab(Scene(trace)).first()

    assert first["functions"] == [
        {"label": "load", "location": "run.py:4", "outside_ns": 525, "error_ns": 1_244, "share": "52.5 %"},
        {"label": "train", "location": "run.py:1", "outside_ns": 275, "error_ns": 952, "share": "27.5 %"},
    ]
    assert SummaryTab(Scene(of_ops((100, 300)))).first()["functions"] == []


def test_lines_that_samples_saw_on_one_side_alone_are_no_change() -> None:
    rows = [event("aten::mm", 200, 300, line=tuple(MAIN[:2]))]
    marks = {SourceLine(*MAIN[:2]): OutsideOps(900, 900)}
    traces = (
        sampled(make_trace(rows, began_ns=0, ended_ns=1000), [(100, [MAIN, seen])], outside=marks)
        for seen in (LOAD, TRAIN)
    )
    text = "\n".join(f"line{number}()" for number in range(1, 10))
    one, other = (Recording(replace(trace, sources={"run.py": text})) for trace in traces)

    assert {row.line for row in one.lines()} == {9, 5}
    assert list(mtprof_nb.compare(one, other).changes) == []


def test_a_recording_without_ops_has_the_lines_and_stacks_of_its_samples() -> None:
    trace = sampled(of_ops(), [(100, [MAIN, LOAD]), (900, [MAIN, TRAIN])])
    stacks = StacksTab(Scene(trace)).first()

    assert [kind.name for kind in tabs_of(Scene(trace))] == ["lines", "stacks"]
    assert [kind.name for kind in tabs_of(Scene(of_ops()))] == []
    assert [metric["key"] for metric in stacks["metrics"]] == ["python"]
    assert stacks["slices"]["total"] == [1000, 500, 500]
    assert "No op ran: lines and stacks" in page(Scene(trace))
