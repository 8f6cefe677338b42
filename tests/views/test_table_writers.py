"""One table in five formats, and the tables of a recording as data."""

import json
import math

import numpy as np
import pytest

from mtprof_nb.tables.table import MARK, Table, TableColumn, table_of
from mtprof_nb.tables.writers.as_dataframe import as_dataframe
from mtprof_nb.tables.writers.as_html import as_html
from mtprof_nb.tables.writers.as_json import as_json
from mtprof_nb.tables.writers.as_markdown import as_markdown
from mtprof_nb.tables.writers.as_text import as_text

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
