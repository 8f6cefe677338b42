"""Events that a page has selected. Each question carries the selection of the view that asks it: Python keeps none."""

from __future__ import annotations

from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.operator_rows import rows
from mtprof_nb.model.trace import OP, Bool
from mtprof_nb.views.scene import Question, Scene

#: The grouping of a selected source line; its row is the number of the line.
_SOURCE = "source"


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
