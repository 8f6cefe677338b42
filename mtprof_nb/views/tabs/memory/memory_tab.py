"""Memory over time: the bytes that each device held, their peak, and the largest allocations."""

from __future__ import annotations

import numpy as np

from mtprof_nb.analysis.lines.attribution import source_location_at
from mtprof_nb.analysis.memory.memory_categories import Category
from mtprof_nb.analysis.memory.memory_curve import (
    Allocation,
    MemoryCurve,
    callers,
    largest_kinds,
    memory_curve,
    memory_devices,
    thinned,
)
from mtprof_nb.analysis.memory.missing_memory import lacks_memory
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.analysis.summary import span_ns
from mtprof_nb.model.trace import Int64, Trace
from mtprof_nb.tables.table import TableColumn
from mtprof_nb.views.escaped_text import shown
from mtprof_nb.views.scene import Answer, Question, Tab
from mtprof_nb.views.strip import NO_MEMORY
from mtprof_nb.views.tabs.timeline.event_facts import texts_of
from mtprof_nb.views.weak_trace import WeakTraceHolder

#: The most points of a curve in a window, and of one that is sent whole.
MOST_POINTS, _WHOLE_POINTS = 1_200, 20_000
LARGEST = 50
_LARGEST_COLUMNS = (
    TableColumn("nbytes", "Size", "bytes", "bytes of the allocation, the largest of those alike"),
    TableColumn("count", "Number", "count", "allocations by the same op on the same line"),
    TableColumn("total_bytes", "Together", "bytes", "bytes of all of them, whenever they were held"),
    TableColumn("at_ns", "At", "time", "when the largest was made, since the recording began"),
    TableColumn("held_ns", "Held for", "held", "how long until the largest was released"),
)
#: The purposes of blocks that are shown; the others are not known.
_PURPOSES = {
    Category.PARAMETER: "parameter",
    Category.OPTIMIZER_STATE: "optimizer state",
    Category.INPUT: "input",
    Category.TEMPORARY: "temporary",
    Category.ACTIVATION: "activation",
    Category.GRADIENT: "gradient",
    Category.AUTOGRAD_DETAIL: "intermediate of backward",
}


def outline(curve: MemoryCurve, begin_ns: int, end_ns: int, most: int = MOST_POINTS) -> Int64:
    """Positions to draw in a window."""
    first = max(int(np.searchsorted(curve.time_ns, begin_ns, side="right")) - 1, 0)
    last = min(int(np.searchsorted(curve.time_ns, end_ns, side="left")) + 1, len(curve.time_ns))
    return first + thinned(curve.allocated[first:last], most)


class MemoryChart(WeakTraceHolder):
    """The memory of one trace, which can be drawn for any window."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        curves = [(device, memory_curve(trace, device)) for device in memory_devices(trace)]
        self.curves = [(device, curve) for device, curve in curves if len(curve.time_ns)]
        self.whole_ns = (trace.began_ns, trace.began_ns + max(span_ns(trace), 1))

    def window(self, begin_ns: int, end_ns: int, most: int = MOST_POINTS) -> Answer:
        """Columns of each curve in a window, and its peak in the whole; times are since the recording began."""
        curves = [self._curve(str(device), curve, (begin_ns, end_ns), most) for device, curve in self.curves]
        names, lines = (
            [at for curve in curves for at in (*curve[key], curve["peak"][key])] for key in ("name", "line")
        )
        return {
            "drawn_ns": [begin_ns - self.whole_ns[0], end_ns - self.whole_ns[0]],
            "curves": curves,
            "texts": texts_of(self.trace, names, (), lines),
        }

    def _curve(self, device: str, curve: MemoryCurve, window: tuple[int, int], most: int) -> Answer:
        points = self._points(curve, outline(curve, *window, most))
        peak = self._points(curve, np.array([curve.allocated.argmax()]))
        return {"title": shown(device), **points, "peak": {key: column[0] for key, column in peak.items()}}

    def _points(self, curve: MemoryCurve, positions: Int64) -> Answer:
        """Columns of changes: when, bytes held then, the difference, and event, name and line of the cause or -1."""
        event = curve.event[positions].astype(np.int64)
        name, known = self.trace.name, event >= 0
        columns = {
            "time_ns": curve.time_ns[positions] - self.whole_ns[0],
            "nbytes": curve.allocated[positions],
            "change": curve.allocated[positions] - curve.allocated[np.maximum(positions - 1, 0)],
            "event": event,
            "name": np.where(known, name[event], -1) if len(name) else event,
            "line": curve.line[positions],
        }
        return {key: column.tolist() for key, column in columns.items()}


memory_chart = once_a_trace(MemoryChart)


def largest_allocations(trace: Trace, most: int = LARGEST) -> Answer:
    """Columns of the largest allocations by kind: size, time and purpose of the largest, and the sum of the kind."""
    kinds = [(alike, device.owner) for device in memory_devices(trace) for alike in largest_kinds(trace, device, most)]
    kinds = sorted(kinds, key=lambda kind: (-kind[0].largest.nbytes, kind[0].largest.allocated_ns))[:most]
    blocks = [alike.largest for alike, _ in kinds]
    names = [int(trace.name[block.event]) if block.event >= 0 else -1 for block in blocks]
    return {
        "id": list(range(len(blocks))),
        "event": [block.event for block in blocks],
        "name": names,
        "line": [block.line for block in blocks],
        "label": [shown(trace.names[name]) if name >= 0 else "outside any op" for name in names],
        "detail": [shown(_detail(trace, alike.largest, owner)) for alike, owner in kinds],
        "columns": [column._asdict() for column in _LARGEST_COLUMNS],
        "value": {
            "nbytes": [block.nbytes for block in blocks],
            "count": [alike.number for alike, _ in kinds],
            "total_bytes": [alike.nbytes for alike, _ in kinds],
            "at_ns": [block.allocated_ns - trace.began_ns for block in blocks],
            "held_ns": [
                None if block.released_ns is None else block.released_ns - block.allocated_ns for block in blocks
            ],
        },
    }


def _detail(trace: Trace, block: Allocation, owner: str) -> str:
    """The process if there are several, the caller of the op that allocated, the purpose, and the source location."""
    caller = int(callers(trace, np.array([block.event], np.int32))[0])
    called = f"in {trace.names[trace.name[caller]]}" if caller >= 0 else ""
    purpose = _PURPOSES.get(block.category, "")
    return ", ".join(filter(None, (owner, called, purpose, source_location_at(trace, block.line))))


def no_curve(trace: Trace) -> str:
    """Why there is nothing to draw."""
    if lacks_memory(trace).any():
        return NO_MEMORY
    if trace.recorded.profile_memory:
        return "Memory was recorded, and nothing was allocated or released."
    return "Memory was not recorded: add --profile-memory, or profile(profile_memory=True)."


class MemoryTab(Tab):
    """Answers questions for the memory chart."""

    @property
    def _chart(self) -> MemoryChart:
        return memory_chart(self._scene.trace)

    def first(self) -> Answer:
        """The whole recording, and the largest allocations."""
        trace, chart = self._scene.trace, self._chart
        if not chart.curves:
            return {"empty": no_curve(trace)}
        return {
            **chart.window(*chart.whole_ns),
            "whole_ns": chart.whole_ns[1] - chart.whole_ns[0],
            "largest": largest_allocations(trace),
        }

    def answer(self, question: Question) -> Answer | None:
        """The `whole` curves, if they are short; a `window`, in nanoseconds since the recording began."""
        if question["ask"] == "whole":
            is_long = any(len(curve.time_ns) > _WHOLE_POINTS for _, curve in self._chart.curves)
            is_sent = question.get("coarse") or not is_long
            return self._chart.window(*self._chart.whole_ns, _WHOLE_POINTS) if is_sent else None
        if question["ask"] != "window":
            return super().answer(question)
        began = self._chart.whole_ns[0]
        return self._chart.window(began + int(question["begin_ns"]), began + int(question["end_ns"]))

    def carried(self) -> list[Question]:
        return [{"ask": "whole"}] if self._chart.curves else []
