"""Events that a page has selected. Each question carries the selection of the view that asks it: Python keeps none."""

from __future__ import annotations

import numpy as np

from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.operators.operator_rows import missing_flag, offered, rows
from mtprof_nb.model.trace import OP, Bool, Int32, Int64
from mtprof_nb.views.scene import Answer, Question, Scene

#: The grouping of a selected source line; its row is the number of the line.
_SOURCE = "source"
#: The most numbers that are counted one by one.
_MOST_COUNTED = 50_000_000


def selected_events(scene: Scene, question: Question) -> Bool | None:
    """The events of the row or source line in the question's `selected`; None without a selection."""
    selected = question.get("selected")
    if selected is None:
        return None
    grouping, row = selected["grouping"], int(selected["row"])
    if grouping == _SOURCE:
        caused: Bool = (attribution(scene.trace).line == row) & (scene.trace.kind == OP)
        return caused
    return rows(scene.trace, grouping, scene.show_all).events_of(row)


def rows_of_events(scene: Scene) -> dict[str, Int32]:
    """For each grouping that was recorded, the row that selects each event, -1 for none."""
    trace = scene.trace
    recorded = [grouping for grouping in offered(trace) if not missing_flag(trace, grouping)]
    found = {grouping: rows(trace, grouping, scene.show_all).of_event for grouping in recorded}
    return {**found, _SOURCE: np.where(trace.kind == OP, attribution(trace).line, np.int32(-1))}


def pairs(row: Int32, other: Int32) -> tuple[Int64, Int64]:
    """The distinct pairs of a row and a number of events, as two columns; without those where either is -1."""
    known = (row >= 0) & (other >= 0)
    others = int(other.max(initial=0)) + 1
    key = row[known].astype(np.int64) * others + other[known]
    # Counting is many times faster than sorting.
    size = int(key.max(initial=-1)) + 1
    distinct = np.flatnonzero(np.bincount(key)) if size <= _MOST_COUNTED else np.unique(key)
    return distinct // others, distinct % others


def written(pair: tuple[Int64, Int64]) -> Answer:
    """Pairs as the page reads them."""
    return {"row": pair[0].tolist(), "of": pair[1].tolist()}
