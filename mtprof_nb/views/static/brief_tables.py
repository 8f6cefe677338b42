"""Tables of a page without scripts, of text and of Markdown: the longest lines, and the top operators."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mtprof_nb.analysis.families import FAMILIES
from mtprof_nb.tables.line_table import Lines
from mtprof_nb.tables.operators.operator_rows import rows, showing
from mtprof_nb.tables.operators.operator_table import OperatorRows
from mtprof_nb.tables.table import MARK, Table, TableColumn
from mtprof_nb.views.scene import Scene

#: Operators that are shown unless another number is asked for.
DEFAULT_ROWS = 10
_BAR_CHARACTERS = 24
_SWATCH, _BAR = TableColumn("family", "", MARK), TableColumn("bar", "", MARK)


def lines_table(scene: Scene, most: int) -> Table | None:
    """The lines with the most time, at most `most` of them and `scene.limit`; None where no line is known."""
    lines = Lines(scene.trace)
    if not any(row.file for row in lines):
        return None
    limit = most if scene.limit is None else max(min(scene.limit, most), 0)
    return lines.brief().first(limit, "line")


def operators_table(scene: Scene) -> Table | None:
    """The operators by `scene.sort`, at most `scene.limit`; None without events."""
    if not len(scene.trace):
        return None
    grouped = showing(rows(scene.trace, "op", scene.show_all), scene.sort)
    shared = next((column.of for column in grouped.columns if column.of), "count")
    largest = max(int(grouped.value[shared].max(initial=0)), 1)

    def cells(row: int) -> list[Any]:
        colour = FAMILIES[grouped.family[row]].colour
        bar = text_bar(int(grouped.value[shared][row]) / largest)
        values = [_value(grouped, column, row) for column in grouped.columns]
        return [("■", colour), grouped.label[row], *values, (bar, colour)]

    columns = (_SWATCH, TableColumn("label", "Name", "code"), *grouped.columns, _BAR)
    order = [[row] for row in grouped.order(scene.sort).tolist()]
    chosen = Table(columns, order).first(DEFAULT_ROWS if scene.limit is None else max(scene.limit, 0))
    return replace(chosen, rows=[cells(row) for (row,) in chosen.rows])


def _value(grouped: OperatorRows, column: TableColumn, row: int) -> Any:
    if column.of:
        return grouped.share(column, row)
    value = int(grouped.value[column.key][row])
    return None if column.unit == "flops" and not value else value


def text_bar(share: float) -> str:
    """A share as a bar of characters, which every frontend keeps."""
    eighths = round(share * _BAR_CHARACTERS * 8)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
