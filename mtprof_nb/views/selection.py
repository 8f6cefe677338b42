"""Events that a row or a source line selects. A page has the selection: Python keeps none."""

from __future__ import annotations

import numpy as np

from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.model.trace import OP, Bool, Int32, Int64, Trace
from mtprof_nb.tables.operators.operator_rows import missing_flag, offered, rows
from mtprof_nb.views.scene import Answer, Question, Scene

#: The grouping of a selected source line; its row is the number of the line.
SOURCE = "source"
#: The most numbers that are counted one by one.
_MOST_COUNTED = 50_000_000


def selected_events(scene: Scene, question: Question) -> Bool | None:
    """The events of the row or source line in the question's `selected`; None without a selection."""
    selected = question.get("selected")
    if selected is None:
        return None
    grouping, row = selected["grouping"], int(selected["row"])
    if grouping != SOURCE:
        return rows(scene.trace, grouping, scene.show_all).events_of(row)
    caused: Bool = rows_of_events(scene, SOURCE) == row
    return caused


def recorded_groupings(trace: Trace) -> list[str]:
    """The groupings of the operators table whose keys were recorded."""
    return [grouping for grouping in offered(trace) if not missing_flag(trace, grouping)]


def rows_of_events(scene: Scene, grouping: str) -> Int32:
    """The row that selects each event under a grouping, -1 for none."""
    if grouping != SOURCE:
        return rows(scene.trace, grouping, scene.show_all).of_event
    line: Int32 = np.where(scene.trace.kind == OP, attribution(scene.trace).line, np.int32(-1))
    return line


def event_rows(scene: Scene, grouping: str, events: Int64) -> Answer:
    """Columns of events, and of the row that selects each under a grouping."""
    return {"event": events.tolist(), "row": rows_of_events(scene, grouping)[events].tolist()}


def pairs(row: Int32 | Int64, other: Int32 | Int64) -> tuple[Int64, Int64]:
    """The distinct pairs of a row and a number of events, as two columns; without those where either is -1."""
    known = (row >= 0) & (other >= 0)
    others = int(other.max(initial=0)) + 1
    key = row[known].astype(np.int64) * others + other[known]
    # Counting is many times faster than sorting.
    size = int(key.max(initial=-1)) + 1
    distinct = np.flatnonzero(np.bincount(key)) if size <= _MOST_COUNTED else np.unique(key)
    return distinct // others, distinct % others


def pair_columns(pair: tuple[Int64, Int64]) -> Answer:
    """Pairs as the page reads them."""
    return {"row": pair[0].tolist(), "of": pair[1].tolist()}
