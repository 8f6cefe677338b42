"""The table of lines: rows, text and DataFrame over one hand-made trace."""

import sys
from dataclasses import replace

import pytest
from marked_cells import new_shell
from traces import event, make_trace

from mtprof_nb.analysis.lines.line_costs import ParameterCost
from mtprof_nb.capture.source_texts import sources
from mtprof_nb.model.trace import OutsideOps, SourceLine, Trace
from mtprof_nb.tables.line_table import LineRow, Lines

CELL = "<ipython-input-4-0>"
SOURCE = "%%mtprofile\n\ny = model(x)\n    loss = y.sum()\nloss.backward()"


@pytest.fixture
def trace() -> Trace:
    return make_trace(
        [
            event("mm", 0, 2_000, line=(CELL, 3)),
            event("sum", 2_000, 3_500, line=(CELL, 4)),
            event("mm", 4_000, 9_000, forward=0, phase="backward", line=(CELL, 5)),
            event("fill", 9_000, 9_250),
        ],
        sources={CELL: SOURCE},
    )


def test_the_slowest_line_comes_first_and_what_has_no_line_last(trace: Trace) -> None:
    lines = Lines(trace)

    assert [(row.line, row.source, row.self_ns) for row in lines] == [
        (3, "y = model(x)", 7_000),
        (4, "loss = y.sum()", 1_500),
        (0, "(unattributed)", 250),
    ]
    assert lines[0] == LineRow(CELL, CELL, 3, "y = model(x)", 2_000, 5_000, 0, 0, 0, 7_000, 7_000, 2)
    assert len(lines[1:]) == 2


def test_the_list_the_table_and_the_dataframe_have_one_order(trace: Trace) -> None:
    pytest.importorskip("pandas")
    outside = {SourceLine(CELL, 4): OutsideOps(9_000, 9_000), SourceLine(CELL, 5): OutsideOps(8_000, 8_000)}
    lines = Lines(replace(trace, outside=outside))
    frame = lines.to_dataframe()

    assert frame["line"].tolist() == [row.line for row in lines] == [4, 5, 3, 0]
    assert [line.partition(" ")[0] for line in lines.table().splitlines()[2:6]] == [
        *(f"{CELL}:{number}" for number in (4, 5, 3)),
        "(unattributed)",
    ]
    assert {row.line: row.outside_error_ns for row in lines if row.line in (4, 5)} == {4: 0, 5: 0}
    assert frame["time_ns"].tolist() == [10_500, 8_000, 7_000, 250]
    assert frame["time_ns"].tolist() == (frame["self_ns"] + frame["outside_ns"]).tolist()


def test_a_table_begins_with_the_line_that_takes_longest_in_ops_or_outside(trace: Trace) -> None:
    outside = {SourceLine(CELL, 4): OutsideOps(9_000, 9_000), SourceLine(CELL, 5): OutsideOps(8_000, 8_000)}
    lines = Lines(replace(trace, outside=outside))
    shown = lines.table(row_limit=2).splitlines()

    assert [row.partition(" ")[0] for row in shown[2:4]] == [f"{CELL}:4", f"{CELL}:5"]
    assert lines.table() == repr(lines)


def test_a_line_has_its_time_outside_ops_also_where_no_op_ran(trace: Trace) -> None:
    # Line 2 is empty, and 6 stands after the end of the text.
    times = {1: (0, 9_000), 2: (600, 600), 3: (40, 90), 5: (9_000, 9_000), 6: (70, 70)}
    outside = {SourceLine(CELL, line): OutsideOps(*spent) for line, spent in times.items()}
    lines = Lines(replace(trace, outside=outside))

    assert [(row.line, row.self_ns, row.outside_ns, row.time_ns, row.total_ns, row.has_ops) for row in lines] == [
        (5, 0, 9_000, 9_000, 9_000, False),
        (3, 7_000, 40, 7_040, 7_090, True),
        (4, 1_500, 0, 1_500, 1_500, True),
        (1, 0, 0, 0, 9_000, False),
        (0, 250, 0, 250, 250, True),
    ]
    text = lines.table(sort_by="outside_ns").splitlines()
    assert text[0].split()[-5:] == ["Outside", "ops", "Total", "Ops", "Source"]
    assert text[2].endswith("  9.00 µs   9.00 µs    0  loss.backward()")
    assert repr(lines).splitlines()[2].startswith(f"{CELL}:5")
    assert {row.outside_ns for row in Lines(trace)} == {None}
    assert repr(Lines(trace)).splitlines()[2].startswith(f"{CELL}:3")


def test_a_cell_without_ops_has_the_time_of_its_lines() -> None:
    line = SourceLine(CELL, 3)
    lines = Lines(make_trace([], sources={CELL: SOURCE}, outside={line: OutsideOps(500, 500)}))

    assert [(row.line, row.time_ns, row.has_ops) for row in lines] == [(3, 500, False)]
    assert "NaN" not in lines.table()


def test_the_text_is_an_aligned_table_with_its_totals(trace: Trace) -> None:
    assert repr(Lines(trace)).splitlines() == [
        "Line                       Self   Share   Forward  Backward     Total  Ops  Source",
        "-" * 90,
        "<ipython-input-4-0>:3   7.00 µs  75.7 %   2.00 µs   5.00 µs   7.00 µs    2  y = model(x)",
        "<ipython-input-4-0>:4   1.50 µs  16.2 %   1.50 µs      0 µs   1.50 µs    1  loss = y.sum()",
        "(unattributed)         0.250 µs   2.7 %  0.250 µs      0 µs  0.250 µs    1",
        "",
        "All lines: 8.75 µs, 4 ops",
    ]


def test_a_table_says_how_much_it_leaves_out(trace: Trace) -> None:
    text = Lines(trace).table(row_limit=1)

    assert "showing 1 of 3 lines" in text
    assert "loss" not in text
    assert "All lines: 8.75 µs, 4 ops" in text
    assert "showing" not in Lines(trace).table(row_limit=-1)


def test_rows_sort_by_any_column(trace: Trace) -> None:
    rows = Lines(trace).table(sort_by="line").splitlines()[2:5]

    assert [row.split()[0] for row in rows] == [f"{CELL}:3", f"{CELL}:4", "(unattributed)"]
    assert Lines(trace).table(sort_by="forward_ns").splitlines()[2].startswith(f"{CELL}:3")


def test_an_unknown_sort_key_lists_the_known_ones(trace: Trace) -> None:
    with pytest.raises(AttributeError, match=r"unknown sort key 'cost': use one of file, where, line, .*self_ns"):
        Lines(trace).table(sort_by="cost")


def test_where_no_lines_were_recorded_the_note_says_how_to_get_them(trace: Trace) -> None:
    note = "no lines were recorded: use profile(with_stack=True), or %%mtprofile in a notebook"

    assert Lines(make_trace([event("mm", 0, 5)])).note == note
    assert repr(Lines(make_trace([event("mm", 0, 5)]))).endswith(f"Note: {note}\n")
    assert Lines(trace).note == Lines(make_trace([event("mm", 0, 5, stack=(("f.py", 1, "f"),))])).note == ""
    assert Lines(make_trace([])).note == ""


def test_the_note_of_the_trace_is_shown() -> None:
    trace = make_trace([event("mm", 0, 5)], lines_note="the cell runs without line marks")

    assert Lines(trace).note == "the cell runs without line marks"
    assert "Note: the cell runs without line marks" in repr(Lines(trace))


def test_an_empty_trace_is_an_empty_table() -> None:
    lines = Lines(make_trace([]))

    assert list(lines) == []
    assert repr(lines) == "no lines were recorded: use profile(with_stack=True), or %%mtprofile in a notebook\n"


def test_without_pandas_the_error_says_how_to_get_it(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)

    with pytest.raises(ImportError, match="pip install pandas"):
        Lines(trace).to_dataframe()


def test_a_data_frame_has_a_column_for_each_field_that_was_recorded(trace: Trace) -> None:
    frame = Lines(trace).to_dataframe()

    assert list(frame.columns) == [
        *("file", "where", "line", "source", "time_ns", "forward_ns", "backward_ns", "optimizer_ns", "other_ns"),
        *("compiling_ns", "self_ns", "total_ns", "count"),
    ]
    assert frame["self_ns"].sum() == 8_750
    assert frame.loc[0, "source"] == "y = model(x)"


def test_memory_and_device_time_are_columns_where_they_were_recorded() -> None:
    trace = make_trace(
        [
            event("mm", 0, 10, line=(CELL, 3), memory=(0, 4096)),
            event("kernel", 20, 60, kind="kernel", device="CUDA", thread=9, launcher=0),
        ]
    )
    lines = Lines(trace)

    assert (lines[0].memory_bytes, lines[0].device_ns) == (4096, 40)
    assert {"memory_bytes", "device_ns"} <= set(lines.to_dataframe().columns)
    titles = lines.table().splitlines()[0].split()
    assert titles[-9:] == ["Device", "Device", "fwd", "Device", "bwd", "Device", "opt", "Memory", "Source"]
    assert "4.00 KiB" in repr(lines)
    assert "allocated_bytes" not in lines.to_dataframe().columns


def test_what_a_line_allocated_is_told_beside_what_it_still_holds() -> None:
    trace = make_trace(
        [event("mm", 0, 10, line=(CELL, 3))],
        allocations=[{"time_ns": 2, "nbytes": 4096, "event": 0}, {"time_ns": 5, "nbytes": -3072, "event": 0}],
    )
    lines = Lines(trace)

    assert (lines[0].memory_bytes, lines[0].allocated_bytes) == (1024, 4096)
    assert lines.table().splitlines()[0].split()[-3:-1] == ["Memory", "Allocated"]
    assert "allocated_bytes" in lines.to_dataframe().columns


def test_the_source_of_a_file_is_read_from_disk() -> None:
    trace = make_trace([event("mm", 0, 10, stack=[(__file__, 1, "f")])])

    assert Lines(trace)[0].source.startswith('"""The table of lines')
    assert Lines(trace)[0].where == "test_lines.py"


def test_a_line_that_nobody_has_is_left_empty() -> None:
    trace = make_trace([event("mm", 0, 10, line=(CELL, 99))], sources={CELL: SOURCE})

    assert Lines(trace)[0].source == ""


def test_a_line_whose_text_is_not_available_has_its_function() -> None:
    trace = make_trace([event("mm", 0, 10, stack=[("a\0b.py", 3, "f")]), event("mm", 10, 20, line=("gone.py", 4))])

    assert [(row.file, row.source) for row in Lines(trace)] == [("a\0b.py", "in f"), ("gone.py", "")]


def test_a_long_line_is_cut_in_the_text_alone() -> None:
    trace = make_trace([event("mm", 0, 10, line=(CELL, 1))], sources={CELL: "x" * 200})

    assert Lines(trace)[0].source == "x" * 200
    assert "x" * 39 + "…" + "x" * 20 in repr(Lines(trace))
    assert "x" * 40 not in repr(Lines(trace))


def test_the_ops_of_a_row_are_listed(trace: Trace) -> None:
    lines = Lines(trace)

    assert [(op.name, op.self_ns) for op in lines.ops(lines[0])] == [("mm", 5_000), ("mm", 2_000)]
    assert [(op.name, op.self_ns) for op in lines.ops(lines[-1])] == [("fill", 250)]


def test_a_cell_of_the_running_notebook_is_called_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    with new_shell() as shell:
        monkeypatch.setattr("IPython.get_ipython", lambda: shell.ip)
        shell.ip.run_cell("name = __import__('sys')._getframe().f_code.co_filename", store_history=True)
        name = shell.ip.user_ns["name"]
        trace = make_trace([event("mm", 0, 1, line=(name, 1)), event("mm", 2, 3, line=("somewhere/model.py", 1))])

        assert sources(vars(trace))["cells"] == {name: "Cell [1]"}


def test_no_file_but_python_source_is_read(tmp_path) -> None:
    for name in ("secret.txt", "model.py"):
        (tmp_path / name).write_text("the first line\n")
    rows = [
        event("mm", at, at + 1, line=(str(tmp_path / name), 1)) for at, name in enumerate(("secret.txt", "model.py"))
    ]

    assert {row.where: row.source for row in Lines(make_trace(rows))} == {
        "secret.txt": "",
        "model.py": "the first line",
    }


def test_the_optimizer_is_divided_among_the_parameters() -> None:
    step = {"phase": "optimizer", "line": (CELL, 9)}
    trace = make_trace(
        [
            event("add_", 0, 10, parameter="Net.0.weight", **step),
            event("add_", 10, 40, parameter="Net.1.bias", **step),
            event("to", 15, 20, parameter="Net.1.bias", **step),
            event("add_", 40, 45, **step),
            event("mm", 50, 90, line=(CELL, 3)),
        ]
    )

    assert Lines(trace).parameters() == [
        ParameterCost("Net.1.bias", "Net.1", 30, 2),
        ParameterCost("Net.0.weight", "Net.0", 10, 1),
        ParameterCost("", "", 5, 1),
    ]


def test_without_shapes_no_parameter_is_known(trace: Trace) -> None:
    assert Lines(trace).parameters() == []
    stepped = make_trace([event("add_", 0, 10, phase="optimizer")])
    assert Lines(stepped).parameters() == [ParameterCost("", "", 10, 1)]
