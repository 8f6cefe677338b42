"""One table in five formats, and the tables of a recording as data."""

import json
import math
from typing import Any

import numpy as np
import pytest
from rank_traces import job
from synthetic import training_run
from test_hostile_writers import on_devices, tables
from traces import event, make_trace

import mtprof_nb as mtp
from mtprof_nb.recording import Recording
from mtprof_nb.tables.table import MARK, Table, TableColumn, table_of
from mtprof_nb.tables.writers.as_dataframe import as_dataframe
from mtprof_nb.tables.writers.as_html import as_html
from mtprof_nb.tables.writers.as_json import as_json
from mtprof_nb.tables.writers.as_markdown import as_markdown
from mtprof_nb.tables.writers.as_text import as_text

TRACES = {"one process": lambda: training_run(600), "devices": on_devices, "ranks": lambda: job(4, 2)}
TABLE = Table(
    columns=(
        TableColumn("mark", "", MARK),
        TableColumn("op", "Op", "code"),
        TableColumn("self_ns", "Self", "time", "time in it"),
        TableColumn("share", "Share", "share"),
        TableColumn("nbytes", "Memory", "bytes"),
        TableColumn("note", "Note", "words"),
    ),
    rows=[
        [("■", "#123456"), "a|b`", (3_000, 4_000), (3, 4), None, "<i>"],
        [("■", "#123456"), "mm", 1_000, (1, 4), 2_048, None],
    ],
    notes=("2 of *all*",),
    sentence="mm & others",
)


def test_a_table_is_aligned_text() -> None:
    assert as_text(TABLE).splitlines() == [
        "mm & others",
        "Op                Self   Share    Memory  Note",
        "----------------------------------------------",
        "a|b`  3.00 µs (75.0 %)  75.0 %         –  <i>",
        "mm             1.00 µs  25.0 %  2.00 KiB",
        "",
        "2 of *all*",
    ]


def test_a_table_is_markdown_in_which_names_mean_nothing() -> None:
    assert as_markdown(TABLE).splitlines() == [
        r"mm \& others",
        "",
        "| Op | Self | Share | Memory | Note |",
        "| --- | ---: | ---: | ---: | --- |",
        r"| `a\|b'` | 3.00 µs (75.0 %) | 75.0 % | – | \<i\> |",
        "| `mm` | 1.00 µs | 25.0 % | 2.00 KiB |  |",
        "",
        r"2 of \*all\*",
    ]
    assert as_markdown(Table(TABLE.columns, [])) == ""


def test_a_cell_of_markdown_begins_with_a_sign_and_a_paragraph_does_not() -> None:
    table = Table([TableColumn("change", "Change", "words")], [["+55 %"]], notes=("+55 %",))

    assert as_markdown(table).splitlines()[2:] == ["| +55 % |", "", r"\+55 %"]


def test_a_zero_is_written_and_a_dash_is_what_is_not_known() -> None:
    table = Table([TableColumn(unit, unit, unit) for unit in ("time", "bytes", "count")], [[0, 0, 0], [None] * 3])

    assert table.texts() == [["0 µs", "0 B", "0"], ["–"] * 3]


def test_the_indentation_of_a_title_is_kept_in_html() -> None:
    table = Table([TableColumn("title", "", "words")], [["idle"], ["  host late"]])

    assert [cell.partition("<")[0] for cell in as_html(table).split('align="left">')[2:]] == [
        "idle",
        "\u00a0\u00a0host late",
    ]


def test_a_table_is_html_in_which_names_mean_nothing() -> None:
    page = as_html(TABLE)

    assert page.startswith("<div>mm &amp; others</div><table ")
    assert '<th title="time in it">Self</th>' in page
    assert '<td align="left"><span style="color:#123456">■</span></td>' in page
    assert '<td nowrap align="left"><code>a|b`</code></td><td nowrap>3.00 µs (75.0 %)</td>' in page
    assert '<td nowrap align="left">&lt;i&gt;</td></tr>' in page
    assert page.endswith("</table><div>2 of *all*</div>")


def test_a_long_cell_is_cut_and_html_has_the_rest_as_its_tooltip() -> None:
    table = Table([TableColumn("op", "Op", "code")], [["x" * 200]])

    assert max(map(len, as_text(table).splitlines())) == 60
    assert f'title="{"x" * 200}"' in as_html(table)


def test_columns_that_no_row_fills_are_left_out_and_others_are_chosen() -> None:
    columns = [TableColumn("real", "Real", "count"), TableColumn("none", "None", "count"), TableColumn("imag", "I")]
    table = table_of(columns, [3, 4], lambda _: {"none": None})

    assert [column.key for column in table.columns] == ["real", "imag"]
    assert [column.key for column in table.only("imag", "absent", "real").columns] == ["imag", "real"]
    assert (table.first(1).rows, table.first(1).notes) == ([[3, 0]], ("showing 1 of 2 rows",))
    assert table.first(-1) is table.first(None) is table.first(2) is table


def test_json_has_records_without_nan() -> None:
    values = [np.int64(3), math.nan, (1, 2), None, {"a": math.inf}]
    table = Table([TableColumn(key) for key in "abcde"], [values])

    assert json.loads(as_json(table)) == [{"a": 3, "b": None, "c": [1, 2], "d": None, "e": {"a": None}}]
    assert as_json(Table(table.columns, [])) == "[]"


def test_a_dataframe_has_the_keys_as_columns() -> None:
    pytest.importorskip("pandas")
    frame = as_dataframe(Table([TableColumn("a"), TableColumn("b")], [[1, 2]]))

    assert (list(frame.columns), frame["b"].tolist()) == (["a", "b"], [2])


@pytest.mark.parametrize("kind", TRACES)
def test_every_table_of_a_recording_is_the_same_data_as_json_and_as_a_dataframe(kind: str) -> None:
    pytest.importorskip("pandas")
    recording = Recording(TRACES[kind]())
    others: list[Any] = [recording.key_averages(), mtp.compare(recording, recording)]
    for table in (*tables(recording.trace), *others):
        frame, records = table.to_dataframe(), json.loads(table.to_json())
        assert len(frame) == len(records)
        for record, row in zip(records, frame.to_dict("records"), strict=True):
            assert list(record) == list(frame.columns)
            numbers = {key for key, value in record.items() if type(value) in (int, float)}
            assert {key: record[key] for key in numbers} == {key: row[key] for key in numbers}
            assert all(type(record[key]) is int for key in numbers if key.endswith("_ns") and table not in others)


@pytest.mark.parametrize("kind", TRACES)
def test_every_table_of_a_recording_is_html_in_a_notebook(kind: str) -> None:
    recording = Recording(TRACES[kind]())
    for table in tables(recording.trace):
        assert table._repr_html_().startswith(("<div", "<table"))
    assert "<table" in mtp.compare(recording, recording)._repr_html_()


def test_events_are_json_under_the_keys_that_were_recorded() -> None:
    events = Recording(training_run(300)).events()
    records = json.loads(events.to_json())

    assert len(records) == len(events)
    assert set(records[0]) == {key for event in events for key in dict(event)}
    assert all(type(record["duration_ns"]) is int for record in records)


def test_events_are_the_same_data_as_json_and_as_a_dataframe_also_in_a_changed_list() -> None:
    pytest.importorskip("pandas")
    scope, others = event("train", 0, 40, kind="scope"), [event("aten::mm", 10, 20), event("aten::add", 20, 30)]
    first, second = (Recording(make_trace([scope, *others])).events() for _ in range(2))
    both = first + second
    both.reverse()
    for events in (first, both):
        frame, records = events.to_dataframe(), json.loads(events.to_json())
        assert all(list(record) == list(frame.columns) for record in records)
        assert records == [
            {key: None if one is None or one != one else one for key, one in row.items()}
            for row in frame.to_dict("records")
        ]
        assert records == [{key: one.get(key) for key in frame.columns} for one in map(dict, events)]
        assert {type(record["correlation_id"]) for record in records} == {int, type(None)}


def test_markdown_begins_with_the_overview_and_has_the_findings() -> None:
    recording = Recording(job(4, 2))
    (finding,) = recording.advice()
    text = recording.to_markdown()

    assert text.startswith("**job**: Rank 2 came last in 10 of 10 all-reduces; ")
    assert f"\n\n**{finding.title}** (train.py:4): {finding.evidence} {finding.gain}\n\n" in text
    assert "\n    sampler = DistributedSampler(dataset)" in text
    assert text.index(finding.title) < text.index("| Rank |") < text.index("| Line |") < text.index("| Name |")
