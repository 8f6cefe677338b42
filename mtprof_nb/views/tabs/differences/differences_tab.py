"""The tab of differences: the verdict, the measured times, the certain changes, and a table of all rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mtprof_nb.comparison.joined_rows import Difference
from mtprof_nb.comparison.measured_points import measured_points
from mtprof_nb.views.comparison.comparison_tables import (
    calls_text,
    change_cells,
    explanation,
    interval_text,
    is_small,
    labels,
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
        findings = self._scene.compared
        a, b = labels(findings)
        rows = findings.differences[:_MOST_ROWS]
        changes = findings.changes[:_MOST_CHANGES]
        return {
            "labels": [a, b],
            "explanation": explanation(findings),
            "points": measured_points(findings)._asdict(),
            "changes": [list(change_cells(change)) for change in changes],
            "more_changes": len(findings.changes) - len(changes),
            "columns": _columns(a, b, with_interval=any(row.verdict and row.verdict.low is not None for row in rows)),
            "rows": _written(rows),
            "more_rows": len(findings.differences) - len(rows),
            "levels": [{"title": title, "colour": colour, "ink": "#ffffff"} for title, colour in LEVELS.values()],
        }


def _columns(a: str, b: str, with_interval: bool) -> list[Answer]:
    interval = ("interval", "Interval", "text", "confidence interval of the ratio")
    columns = (
        ("verdict", "Verdict", "words", "what can be said about the times; the reason shows on hover"),
        ("a_ns", a, "time", f"time of {a}"),
        ("b_ns", b, "time", f"time of {b}"),
        ("delta_ns", "Δ", "change", "difference of the times"),
        ("ratio", "Ratio", "ratio", f"time of {b} over that of {a}"),
        *([interval] if with_interval else []),
        ("calls", "Calls", "text", "calls of an op or kernel, ops of a line"),
    )
    return [dict(zip(("key", "title", "unit", "meaning", "of"), (*column, ""), strict=True)) for column in columns]


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
