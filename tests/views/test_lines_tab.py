"""The lines tab: what it sends first, what it answers, and the table without scripts."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from traces import event, make_trace

from mtprof_nb.model.trace import OutsideOps, SourceLine, Trace
from mtprof_nb.tables.writers.as_html import as_html
from mtprof_nb.views.panel import show_panel as panel
from mtprof_nb.views.scene import Scene
from mtprof_nb.views.selection import selected_events
from mtprof_nb.views.static import static_page as static
from mtprof_nb.views.static.brief_tables import lines_table
from mtprof_nb.views.tabs.lines import listing
from mtprof_nb.views.tabs.lines.lines_tab import NOT_RECORDED, LinesTab
from mtprof_nb.views.tabs.lines.listing import listed_files

CELL = "<ipython-input-4-0>"
SOURCE = "%%mtprofile\n\ny = model(x)\nfor i in y:\n\tz = i.sum()\nz.backward()"


@pytest.fixture
def trace() -> Trace:
    return make_trace(
        [
            event("aten::mm", 0, 2_000, line=(CELL, 3)),
            event("aten::sum", 2_000, 3_500, line=(CELL, 5)),
            event("aten::mm", 4_000, 9_000, forward=0, phase="backward", line=(CELL, 6)),
            event("aten::fill_", 9_000, 9_250),
            event("aten::relu", 9_500, 9_600, line=("model.py", 2)),
        ],
        sources={CELL: SOURCE},
    )


def test_the_whole_cell_is_listed_with_the_cost_of_each_line(trace: Trace) -> None:
    first = LinesTab(Scene(trace)).first()
    cell = first["files"][0]

    assert (cell["title"], cell["self_ns"]) == (f"{CELL}", 8_500)
    assert [line["line"] for line in cell["lines"]] == [1, 2, 3, 4, 5, 6]
    assert cell["lines"][0] == {"line": 1, "text": "%%mtprofile"}
    assert cell["lines"][4]["text"] == "    z = i.sum()"
    assert cell["lines"][2] == {
        "line": 3,
        "id": 0,
        "text": "y = model(x)",
        "location": f"{CELL}:3",
        "phases": {"forward": 2_000, "backward": 5_000, "optimizer": 0, "other": 0, "compiling": 0},
        "time_ns": 7_000,
        "outside_ns": None,
        "total_ns": 7_000,
        "count": 2,
        "bytes": None,
        "device_ns": None,
        "device_phases": None,
    }


def test_time_outside_ops_stands_on_its_line_also_where_no_op_ran(trace: Trace) -> None:
    times = {3: (400, 400), 4: (30_000, 30_400), 6: (0, 0)}
    outside = {SourceLine(CELL, line): OutsideOps(*spent) for line, spent in times.items()}
    tab = LinesTab(Scene(replace(trace, outside=outside)))
    first = tab.first()
    lines = first["files"][0]["lines"]

    assert (first["outside"], first["largest_ns"], first["whole_ns"]) == ("outside ops", 30_000, 8_850 + 30_400)
    assert (first["files"][0]["self_ns"], first["files"][0]["outside_ns"]) == (8_500, 30_400)
    assert lines[1] == {"line": 2, "text": ""}
    assert lines[3] == {"line": 4, "text": "for i in y:", "time_ns": 30_000, "outside_ns": 30_000, "total_ns": 30_400}
    assert [line.get("outside_ns") for line in lines] == [None, None, 400, 30_000, 0, None]
    assert (lines[2]["time_ns"], lines[2]["total_ns"]) == (7_400, 7_400)
    assert [op["label"] for op in tab.answer({"ask": "ops", "id": -1})["ops"]] == ["aten::fill_"]
    assert tab.answer({"ask": "ops", "id": 99}) == {"ops": []}


def test_a_cell_without_an_op_has_its_lines_and_nothing_else(trace: Trace) -> None:
    bare = replace(trace.take([]), outside={SourceLine(CELL, 4): OutsideOps(30_000, 30_000)})
    first = LinesTab(Scene(bare)).first()

    assert [line["time_ns"] for line in first["files"][0]["lines"] if "time_ns" in line] == [30_000]
    assert (first["rest"], first["ops"], first["phases"]) == ([], {}, [])
    assert "for i in y:" in static.text(Scene(bare))
    assert "for i in y:" in static.html(Scene(bare))
    assert [tab["name"] for tab in panel.panel(bare).tabs] == ["lines"]
    assert panel.panel(trace.take([])).tabs == []


def test_the_slowest_file_is_the_one_that_took_longest(trace: Trace) -> None:
    outside = {SourceLine("model.py", 2): OutsideOps(50_000, 50_000)}

    assert [file.file for file in listed_files(replace(trace, outside=outside))] == ["model.py", CELL]


def test_the_first_answer_knows_its_totals_and_what_belongs_to_no_line(trace: Trace) -> None:
    first = LinesTab(Scene(trace)).first()

    assert (first["whole_ns"], first["largest_ns"], first["note"]) == (9_600, 7_000, "")
    assert (first["memory"], first["largest_device_ns"], first["outside"]) == (None, 0, None)
    assert first["phases"] == ["forward", "backward"]
    assert [(cost["id"], cost["text"], cost["time_ns"]) for cost in first["rest"]] == [(-1, "(unattributed)", 250)]


def test_ops_of_a_line_come_along_and_on_demand(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    tab = LinesTab(Scene(trace))
    ops = [
        {"name": 0, "label": "aten::mm", "phase": "backward", "count": 1, "self_ns": 5_000, "event": 2},
        {"name": 0, "label": "aten::mm", "phase": "forward", "count": 1, "self_ns": 2_000, "event": 0},
    ]

    assert tab.first()["ops"][0] == ops
    assert tab.answer({"ask": "ops", "id": 0}) == {"ops": ops}
    assert [op["label"] for op in tab.answer({"ask": "ops", "id": -1})["ops"]] == ["aten::fill_"]
    assert tab.answer({"ask": "ops", "id": 99}) == {"ops": []}
    monkeypatch.setattr("mtprof_nb.views.tabs.lines.lines_tab._MOST_OPS", 1)
    assert tab.answer({"ask": "ops", "id": 0})["ops"] == [ops[0], {"more": 1}]


def test_an_optimizers_line_says_what_it_spent_on_each_parameter() -> None:
    step = {"phase": "optimizer", "line": (CELL, 6)}
    trace = make_trace([event("add_", 0, 10, parameter="Net.w", **step), event("add_", 10, 14, **step)])

    ops = LinesTab(Scene(trace)).answer({"ask": "ops", "id": 0})["ops"]
    assert [op.get("label", op.get("parameter")) for op in ops] == ["add_", "Net.w"]
    assert ops[1] == {"parameter": "Net.w", "count": 1, "self_ns": 10}


def test_a_selected_line_stands_for_the_ops_that_it_caused(trace: Trace) -> None:
    line = selected_events(Scene(trace), {"selected": {"grouping": "source", "row": 0}})

    assert line is not None
    assert line.tolist() == [True, False, True, False, False]
    assert selected_events(Scene(trace), {"selected": None}) is None
    assert selected_events(Scene(trace), {}) is None


def test_each_row_of_the_operators_has_its_lines(trace: Trace) -> None:
    tab = LinesTab(Scene(trace))

    assert tab.answer({"ask": "lit", "grouping": "op"}) == {"row": [0, 1, 2, 3], "of": [0, 1, -1, 3]}
    assert tab.answer({"ask": "lit", "grouping": "source"}) == {"row": [0, 1, 3], "of": [0, 1, 3]}


def test_a_page_carries_the_ops_of_the_lines_that_are_not_shown_first(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mtprof_nb.views.tabs.lines.lines_tab._LINES_WITH_OPS", 2)
    tab = LinesTab(Scene(trace))

    assert list(tab.first()["ops"]) == [0, 1]
    assert [asked["id"] for asked in tab.carried() if asked["ask"] == "ops"] == [3, -1]


def test_without_lines_the_tab_says_how_to_get_them() -> None:
    trace = make_trace([event("aten::mm", 0, 10)], lines_note="the cell runs without line marks (OSError: x)")

    assert LinesTab(Scene(trace)).first() == {"empty": f"{NOT_RECORDED} the cell runs without line marks (OSError: x)"}
    assert "add --with-stack" in NOT_RECORDED


def test_a_cell_without_ops_is_not_told_to_be_profiled() -> None:
    frames = make_trace([event("f", 0, 10, kind="python")])
    elsewhere = make_trace([event("mm", 0, 10), event("scope", 20, 30, kind="scope", line=(CELL, 1))])

    assert LinesTab(Scene(frames)).first() == {"empty": "No op ran, so that no line has a cost."}
    assert LinesTab(Scene(elsewhere)).first()["empty"].startswith("No op ran on a line of the cell: add --with-stack")


def test_a_hint_names_the_flag_that_opens_the_functions_that_lines_call() -> None:
    def hint(**facts: Any) -> str:
        found: str = LinesTab(Scene(make_trace([event("mm", 0, 5, line_stack=[cell], **facts)]))).first()["hint"]
        return found

    cell = (CELL, 3, "<module>")
    assert hint().startswith("--with-stack adds the lines of functions")
    assert hint(stack=[cell]) == ""


def test_the_slowest_file_comes_first(trace: Trace) -> None:
    assert [file.title for file in listed_files(trace)] == [CELL, "model.py"]


def test_a_long_file_is_listed_around_its_costly_lines(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text("".join(f"line {number}\n" for number in range(1, 1_001)))
    trace = make_trace(
        [event("mm", 10 * n, 10 * n + 5, line=(str(path), line)) for n, line in enumerate((1, 500, 503))]
    )

    numbers = [line.number if line else None for line in listed_files(trace)[0].lines]
    assert numbers == [1, 2, 3, 4, None, *range(497, 507), None]
    assert [line.text for line in listed_files(trace)[0].lines if line and line.row] == [
        "line 1",
        "line 500",
        "line 503",
    ]


def test_what_stands_far_before_the_first_costly_line_is_left_out() -> None:
    text = "".join(f"line {number}\n" for number in range(1, 31))
    trace = make_trace([event("mm", 10 * n, 10 * n + 5, line=(CELL, n)) for n in (11, 27)], sources={CELL: text})

    numbers = [line.number if line else None for line in listed_files(trace)[0].lines]
    assert numbers == [None, *range(8, 31)]


def test_a_magic_is_listed_as_it_was_typed() -> None:
    text = (
        "get_ipython().run_cell_magic('mtprofile', '--all', None)\nget_ipython().run_line_magic('load_ext', 'x y')\n"
        "  get_ipython().system('ls')\nget_ipython().run_line_magic('time', '\\'a\\'')"
    )
    trace = make_trace([event("mm", 0, 5, line=(CELL, 2))], sources={CELL: text})

    assert [line.text for line in listed_files(trace)[0].lines if line] == [
        "%%mtprofile --all",
        "%load_ext x y",
        "  !ls",
        "get_ipython().run_line_magic('time', '\\'a\\'')",
    ]


def test_the_listing_ends_at_its_limit(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MOST_LINES", 4)

    files = listed_files(trace)
    assert [len(file.lines) for file in files] == [4]


def test_a_line_past_the_end_of_its_text_is_listed_empty() -> None:
    trace = make_trace([event("mm", 0, 5, line=(CELL, 3))], sources={CELL: "x"})

    assert [(line.number, line.text) for line in listed_files(trace)[0].lines if line] == [(1, "x"), (2, ""), (3, "")]


def lines_html(trace: Trace, most: int = 10) -> str:
    """The table of lines of a page without scripts."""
    table = lines_table(Scene(trace), most)
    return "" if table is None else as_html(table)


def test_the_table_without_scripts_has_the_slowest_lines(trace: Trace) -> None:
    page = lines_html(trace)

    assert page.index("y = model(x)") < page.index("z = i.sum()") < page.index("(unattributed)")
    assert "showing" not in page
    assert "showing 2 of 4 lines" in lines_html(trace, 2)
    assert lines_html(make_trace([event("mm", 0, 5)])) == ""


def test_the_table_without_scripts_has_the_lines_that_took_longest_outside_ops(trace: Trace) -> None:
    times = {4: (30_000, 30_400), 3: (400, 400)}
    outside = {SourceLine(CELL, line): OutsideOps(*spent) for line, spent in times.items()}
    page = lines_html(replace(trace, outside=outside))
    rows = [re.sub("<[^>]+>", " ", f"<{row}").split() for row in page.split("<tr ")]

    assert rows[1] == ["Line", "Time", "Share", "Forward", "Backward", "Outside", "ops", "Total", "Ops", "Source"]
    where, source = ["&lt;ipython-input-4-0&gt;:4"], ["for", "i", "in", "y:"]
    numbers = ["30.0", "µs", "76.4", "%", "0", "µs", "0", "µs", "30.0", "µs", "30.4", "µs", "0"]
    assert rows[2] == where + numbers + source
    assert rows[3][1:14] == [
        *("7.40", "µs", "18.9", "%", "2.00", "µs", "5.00", "µs", "0.400", "µs", "7.40", "µs", "2"),
    ]


def test_source_is_text_and_never_markup() -> None:
    trace = make_trace([event("mm", 0, 5, line=("<b>.py", 1))], sources={"<b>.py": "<script>alert(1)</script>"})

    assert "<script" not in lines_html(trace)
    assert "&lt;script&gt;" in lines_html(trace)


def test_a_file_without_text_has_its_lines_with_a_cost_alone() -> None:
    frames = {3: "forward", 30: "loss"}
    rows = [event("mm", line, line + 1, stack=[("gone.py", line, name)]) for line, name in frames.items()]
    (file,) = listed_files(make_trace(rows))

    assert [(line.number, line.text) for line in file.lines if line] == [(3, "in forward"), (30, "in loss")]


def test_a_line_has_its_time_on_devices_by_phase() -> None:
    on = {"kind": "kernel", "device": "CUDA", "thread": 7}
    trace = make_trace(
        [
            event("aten::mm", 0, 10, line=(CELL, 3)),
            event("gemm", 20, 50, launcher=0, **on),
            event("aten::mm", 60, 70, forward=0, phase="backward", line=(CELL, 6)),
            event("gemm", 80, 140, launcher=2, **on),
        ],
        sources={CELL: SOURCE},
    )
    first = LinesTab(Scene(trace)).first()
    line = first["files"][0]["lines"][2]

    assert (first["largest_device_ns"], line["device_ns"]) == (90, 90)
    assert line["device_phases"] == {"forward": 30, "backward": 60, "optimizer": 0, "other": 0, "compiling": 0}
    assert "<th" in lines_html(trace)
    assert ">Device</th>" in lines_html(trace)
