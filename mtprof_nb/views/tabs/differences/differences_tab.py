"""The tab of differences: the verdict, the measured times, the certain changes, and a table of all rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mtprof_nb.comparison.compared import Compared
from mtprof_nb.comparison.joined_rows import Difference
from mtprof_nb.comparison.measured_points import measured_points
from mtprof_nb.tables.table import TableColumn
from mtprof_nb.views.comparison.comparison_tables import (
    calls_text,
    change_cells,
    explanation,
    interval_text,
    is_small,
    labels,
    time_columns,
    verdict_text,
)
from mtprof_nb.views.escaped_text import shown
from mtprof_nb.views.scene import Answer, Tab

#: The most rows and changes that are sent to the page.
_MOST_ROWS, _MOST_CHANGES = 2_000, 200
#: Levels of rows with their titles and colours.
LEVELS = {
    "whole": ("whole", "#6b7582"),
    "step": ("step", "#6b7582"),
    "call": ("call", "#6b7582"),
    "phase": ("phase", "#b3a8b0"),
    "line": ("line", "#55b075"),
    "op": ("op", "#1f77d0"),
    "kernel": ("kernel", "#f2a02c"),
}


class DifferencesTab(Tab):
    """Sends all that the page shows at once; it has no questions."""

    def first(self) -> Answer:
        compared = self._scene.compared
        rows = compared.differences[:_MOST_ROWS]
        changes = compared.changes[:_MOST_CHANGES]
        return {
            "labels": list(labels(compared)),
            "explanation": explanation(compared),
            "points": measured_points(compared)._asdict(),
            "changes": [list(change_cells(change)) for change in changes],
            "more_changes": len(compared.changes) - len(changes),
            "columns": _columns(
                compared, with_interval=any(row.verdict and row.verdict.low is not None for row in rows)
            ),
            "rows": _written(rows),
            "more_rows": len(compared.differences) - len(rows),
            "levels": [{"title": title, "colour": colour, "ink": "#ffffff"} for title, colour in LEVELS.values()],
        }


def _columns(compared: Compared, with_interval: bool) -> list[Answer]:
    *times, verdict = time_columns(compared)
    calls = TableColumn("calls", "Calls", "text", "calls of an op or kernel, ops of a line")
    columns = (verdict, *(column for column in times if with_interval or column.key != "interval"), calls)
    return [column._asdict() for column in columns]


def _written(rows: Sequence[Difference]) -> Answer:
    """Columns of rows; None where a side does not have a value."""
    numbers = ("a_ns", "b_ns", "delta_ns", "ratio")
    names = list(LEVELS)
    return {
        "id": list(range(len(rows))),
        "label": [shown(row.name) for row in rows],
        "detail": [shown(row.detail) for row in rows],
        "family": [names.index(row.level) for row in rows],
        "value": {
            **{name: [_number(getattr(row, name)) for row in rows] for name in numbers},
            # The column is sorted by the difference.
            "calls": [_number((row.b_calls or 0.0) - (row.a_calls or 0.0)) for row in rows],
        },
        "text": {
            "interval": [interval_text(row.verdict) for row in rows],
            "verdict": [verdict_text(row) for row in rows],
            "calls": [calls_text(row) for row in rows],
        },
        "hint": {"verdict": [row.verdict.why if row.verdict is not None else row.change for row in rows]},
        "small": [is_small(row) for row in rows],
    }


def _number(value: Any) -> float | None:
    return None if value is None else round(value, 4)
