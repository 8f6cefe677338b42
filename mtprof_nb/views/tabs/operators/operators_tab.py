"""The operators tab: a table that sorts, filters, groups and selects."""

from __future__ import annotations

import numpy as np

from mtprof_nb.analysis.families import FAMILIES
from mtprof_nb.model.trace import Int64
from mtprof_nb.tables.operators.operator_rows import GROUPINGS, missing_flag, offered, rows, showing
from mtprof_nb.tables.operators.operator_table import OperatorRows
from mtprof_nb.views.escaped_text import shown
from mtprof_nb.views.scene import MOST_SENT, Answer, Question, Tab
from mtprof_nb.views.selection import SOURCE, event_rows, pair_columns, pairs, recorded_groupings, rows_of_events
from mtprof_nb.views.strip import why_empty

#: The most rows that are saved with the notebook, and that are sent: the longest ones.
_FIRST_ROWS, _MOST_ROWS = 400, 10_000


class OperatorsTab(Tab):
    """Answers questions for the rows of a grouping, and for the rows of events."""

    def first(self) -> Answer:
        """The rows by op, with the groupings and columns of the table."""
        if not len(self._scene.trace):
            return {"empty": why_empty(self._scene.trace)}
        return {
            "groupings": [
                {"key": key, "title": GROUPINGS[key].title, "flag": missing_flag(self._scene.trace, key)}
                for key in offered(self._scene.trace)
            ],
            "limit": self._scene.limit,
            "families": [family._asdict() for family in FAMILIES],
            **self._table("op", self._scene.sort, _FIRST_ROWS),
        }

    def answer(self, question: Question) -> Answer | None:
        """The `rows` of a grouping; `lit`, their lines; the row of each of the `events`, or `row_of` one.

        There are at most `_MOST_ROWS` rows, and no `events` of a long recording.
        """
        ask, grouping = question["ask"], question["grouping"]
        if ask == "rows":
            return self._table(grouping, "self_ns", _MOST_ROWS)
        row = rows_of_events(self._scene, grouping)
        if ask == "lit":
            return pair_columns(pairs(row, rows_of_events(self._scene, SOURCE)))
        if ask == "row_of":
            return {"row": int(row[int(question["event"])])}
        if ask != "events":
            return super().answer(question)
        if len(row) > MOST_SENT:
            return None
        return event_rows(self._scene, grouping, np.arange(len(row)))

    def carried(self) -> list[Question]:
        recorded = recorded_groupings(self._scene.trace)
        return [{"ask": ask, "grouping": grouping} for ask in ("rows", "lit") for grouping in recorded]

    def _table(self, grouping: str, sort: str, most: int) -> Answer:
        grouped = showing(rows(self._scene.trace, grouping, self._scene.show_all), self._scene.sort)
        known = {"label", *(column.key for column in grouped.columns)}
        sort = sort if sort in known else grouped.default_sort
        return {
            "grouping": grouping,
            "sort": sort,
            "columns": [column._asdict() for column in grouped.columns],
            "rows": _written(grouped, grouped.order(sort)[:most]),
            "total": len(grouped),
            "wholes": grouped.wholes,
        }


def _written(grouped: OperatorRows, order: Int64) -> Answer:
    """Columns of the rows at `order`, as lists."""
    positions = order.tolist()
    return {
        "id": positions,
        "label": [shown(grouped.label[row]) for row in positions],
        "detail": [shown(grouped.detail[row]) for row in positions],
        "family": grouped.family[order].tolist(),
        "name": grouped.name[order].tolist(),
        "value": {column.key: grouped.value[column.key][order].tolist() for column in grouped.columns if not column.of},
    }
