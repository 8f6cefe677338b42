"""The operators tab: a table that sorts, filters, groups and selects."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from mtprof_nb.analysis.families import FAMILIES
from mtprof_nb.analysis.operators.operator_rows import GROUPINGS, missing_flag, offered, rows, showing
from mtprof_nb.analysis.operators.operator_table import OperatorRows
from mtprof_nb.model.trace import Int64
from mtprof_nb.views.escaped_text import shown
from mtprof_nb.views.scene import Answer, Question, Tab
from mtprof_nb.views.selection import selected_events
from mtprof_nb.views.strip import why_empty

#: The most rows that are saved with the notebook, and that answer a question.
_FIRST_ROWS, _MOST_ROWS = 400, 2_000


class OperatorsTab(Tab):
    """Answers questions for the rows of a grouping, for the row of an event, and for the rows of the selection."""

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
            **self._table("op", self._scene.sort, limit=_FIRST_ROWS),
        }

    def answer(self, question: Question) -> Answer:
        """`rows` of a grouping, sorted and filtered; `row_of` an event; rows `lit` by the selection."""
        if question["ask"] == "lit":
            lit = selected_events(self._scene, question)
            found = [] if lit is None else np.unique(self._rows(question["grouping"]).of_event[lit]).tolist()
            return {"ids": [row for row in found if row >= 0]}
        if question["ask"] == "rows":
            wanted = (question["grouping"], question["sort"], bool(question.get("descending", True)))
            return self._table(*wanted, str(question.get("filter", "")), bool(question.get("regex")))
        grouped = self._rows(question["grouping"])
        row = int(grouped.of_event[int(question["event"])])
        return {"row": row, "rows": _written(grouped, np.array([row] if row >= 0 else [], np.int64))}

    def carried(self) -> Answer:
        """The rows of every grouping that was recorded, the longest of them where there are many."""
        trace = self._scene.trace
        recorded = [grouping for grouping in offered(trace) if not missing_flag(trace, grouping)]
        return {"tables": {grouping: self._table(grouping, "self_ns") for grouping in recorded}}

    def _rows(self, grouping: str) -> OperatorRows:
        return showing(rows(self._scene.trace, grouping, self._scene.show_all), self._scene.sort)

    def _table(
        self,
        grouping: str,
        sort: str,
        descending: bool = True,
        text: str = "",
        regex: bool = False,
        limit: int = _MOST_ROWS,
    ) -> Answer:
        grouped = self._rows(grouping)
        sort = sort if sort in _sort_keys(grouped) else grouped.default_sort
        order = grouped.order(sort, descending)
        matching = order[_matches(grouped, order, text, regex)] if text else order
        return {
            "grouping": grouping,
            "sort": sort,
            "descending": descending,
            "columns": [column._asdict() for column in grouped.columns],
            "rows": _written(grouped, matching[:limit]),
            "found": len(matching),
            "total": len(grouped),
            "wholes": grouped.wholes,
        }


def _sort_keys(grouped: OperatorRows) -> set[str]:
    return {"label", *(column.key for column in grouped.columns)}


def _matches(grouped: OperatorRows, order: Int64, text: str, regex: bool) -> Any:
    """Which rows contain `text`, or match it as a regular expression; an invalid one matches nothing."""
    try:
        pattern = re.compile(text if regex else re.escape(text), re.IGNORECASE)
    except re.error:
        return np.zeros(len(order), np.bool_)
    label, detail = grouped.label, grouped.detail
    return np.array(
        [bool(pattern.search(label[row]) or pattern.search(detail[row])) for row in order.tolist()], np.bool_
    )


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
