"""Memory over time: the bytes that each device held, their peak, and the largest allocations."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtprof_nb.analysis.families import FAMILIES, REDUCTION
from mtprof_nb.analysis.lines.attribution import source_location_of
from mtprof_nb.analysis.memory.memory_categories import Category
from mtprof_nb.analysis.memory.memory_curve import (
    Block,
    MemoryCurve,
    callers,
    largest_kinds,
    memory_curve,
    memory_devices,
    thinned,
)
from mtprof_nb.analysis.memory.missing_memory import lacks_memory
from mtprof_nb.analysis.operator_rows import Column
from mtprof_nb.analysis.summary import span_ns
from mtprof_nb.model.trace import Int64, Trace
from mtprof_nb.views import units
from mtprof_nb.views.charts.stack_charts import translucent
from mtprof_nb.views.charts.timeline_picture import time_axis
from mtprof_nb.views.escaped_text import hover, shown
from mtprof_nb.views.scene import Answer, Question, Scene, Tab
from mtprof_nb.views.strip import NO_MEMORY

Figure = Any

MOST_POINTS = 1_200
LARGEST = 50
_TICKS = 5
_LARGEST_COLUMNS = (
    Column("nbytes", "Size", "bytes", "bytes of the allocation, the largest of those alike"),
    Column("count", "Number", "count", "allocations by the same op on the same line"),
    Column("total_bytes", "Together", "bytes", "bytes of all of them, whenever they were held"),
    Column("at_ns", "At", "time", "when the largest was made, since the recording began"),
    Column("held_ns", "Held for", "held", "how long until the largest was released"),
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
#: Colours of the devices, in their order: matrix blue first, then those that differ most from it.
_CURVES = tuple(FAMILIES[code].colour for code in (0, 1, 3, 2, 6))


def outline(curve: MemoryCurve, begin_ns: int, end_ns: int, most: int = MOST_POINTS) -> Int64:
    """Positions to draw in a window."""
    first = max(int(np.searchsorted(curve.time_ns, begin_ns, side="right")) - 1, 0)
    last = min(int(np.searchsorted(curve.time_ns, end_ns, side="left")) + 1, len(curve.time_ns))
    return first + thinned(curve.allocated[first:last], most)


class MemoryChart:
    """The memory of one trace, which can be drawn for any window."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        curves = [(device, memory_curve(trace, device)) for device in memory_devices(trace)]
        self.curves = [(device, curve) for device, curve in curves if len(curve.time_ns)]
        self.whole_ns = (trace.began_ns, trace.began_ns + max(span_ns(trace), 1))

    def picture(self, begin_ns: int, end_ns: int) -> Answer:
        """The plotly figure of a window, as plain lists."""
        colours = _CURVES * len(self.curves)
        lines = [
            self._line(str(device), curve, (begin_ns, end_ns), colour)
            for (device, curve), colour in zip(self.curves, colours, strict=False)
        ]
        marks = [self._peak(str(device), curve) for device, curve in self.curves]
        return {"data": [*lines, *marks], "layout": self._layout(begin_ns, end_ns)}

    def _seconds(self, ns: Int64) -> list[float]:
        since: list[float] = ((ns - self.whole_ns[0]) / 1e9).tolist()
        return since

    def _line(self, device: str, curve: MemoryCurve, window: tuple[int, int], colour: str) -> dict[str, Any]:
        positions = outline(curve, *window)
        time_ns, held = curve.time_ns[positions], curve.allocated[positions]
        texts = [self._hover(device, curve, position) for position in positions.tolist()]
        if positions[-1] == len(curve.time_ns) - 1:
            # The last bytes are held until the end of the recording.
            time_ns, held = np.append(time_ns, max(self.whole_ns[1], time_ns[-1])), np.append(held, held[-1])
            texts.append(texts[-1])
        return {
            "type": "scatter",
            "mode": "lines",
            "name": hover(device),
            "x": self._seconds(time_ns),
            "y": held.tolist(),
            "line": {"shape": "hv", "width": 1.5, "color": colour},
            "fill": "tozeroy",
            "fillcolor": translucent(colour, 0.2),
            "hovertext": texts,
            "hoverinfo": "text",
        }

    def _peak(self, device: str, curve: MemoryCurve) -> dict[str, Any]:
        position = int(curve.allocated.argmax())
        at = self._seconds(curve.time_ns[position : position + 1])
        late = at[0] > self._seconds(np.array([self.whole_ns[1]]))[0] / 2
        most = int(curve.allocated[position])
        return {
            "type": "scatter",
            "mode": "markers+text",
            "name": f"peak of {hover(device)}",
            "x": at,
            "y": [most],
            "text": [f"peak {units.nbytes(most)}{self._cause(int(curve.event[position]))}"],
            "textposition": "top left" if late else "top right",
            "marker": {"size": 9, "symbol": "diamond", "color": FAMILIES[REDUCTION].colour},
            "hovertext": [self._hover(device, curve, position)],
            "hoverinfo": "text",
            "showlegend": False,
            "cliponaxis": False,
        }

    def _cause(self, event: int) -> str:
        where = source_location_of(self.trace, event)
        named = f" by {hover(shown(self.trace.names[self.trace.name[event]], 40))}" if event >= 0 else ""
        return f"{named}, {hover(shown(where, 40))}" if where else named

    def _hover(self, device: str, curve: MemoryCurve, position: int) -> str:
        event, held = int(curve.event[position]), int(curve.allocated[position])
        change = held - int(curve.allocated[position - 1]) if position else 0
        at = units.duration(int(curve.time_ns[position]) - self.whole_ns[0])
        by = f" by {hover(self.trace.names[self.trace.name[event]])}" if event >= 0 else ""
        lines = [f"<b>{units.nbytes(held)}</b> on {hover(device)}, at {at}"]
        if change:
            lines.append(f"{'+' if change > 0 else ''}{units.nbytes(change)}{by}")
        if where := source_location_of(self.trace, event):
            lines.append(hover(where))
        return "<br>".join(lines)

    def _layout(self, begin_ns: int, end_ns: int) -> dict[str, Any]:
        peak = max((int(curve.allocated.max()) for _, curve in self.curves), default=1)
        values = byte_ticks(peak)
        return {
            "showlegend": len(self.curves) > 1,
            "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
            "hovermode": "closest",
            "dragmode": "zoom",
            "margin": {"l": 72, "r": 14, "t": 22, "b": 34},
            "xaxis": time_axis(*self._seconds(np.array([begin_ns, end_ns, self.whole_ns[1]]))),
            "yaxis": {
                "range": [0, peak * 1.18 or 1],
                "fixedrange": True,
                "zeroline": False,
                "tickvals": values,
                "ticktext": [units.nbytes(value) for value in values],
            },
        }


def byte_ticks(peak: int) -> list[int]:
    """Round numbers of bytes from 0 to `peak`, a few of them."""
    step = 1 << (max(peak // _TICKS, 1) - 1).bit_length()
    return list(range(0, peak + 1, step))


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


def _detail(trace: Trace, block: Block, owner: str) -> str:
    """The process if there are several, the caller of the op that allocated, the purpose, and the source location."""
    caller = int(callers(trace, np.array([block.event], np.int32))[0])
    called = f"in {trace.names[trace.name[caller]]}" if caller >= 0 else ""
    purpose = _PURPOSES.get(block.category, "")
    return ", ".join(filter(None, (owner, called, purpose, source_location_of(trace, block.event))))


def no_curve(trace: Trace) -> str:
    """Why there is nothing to draw."""
    if lacks_memory(trace).any():
        return NO_MEMORY
    if trace.recorded.profile_memory:
        return "Memory was recorded, and nothing was allocated or released."
    return "Memory was not recorded: add --profile-memory, or profile(profile_memory=True)."


def memory(trace: Trace) -> Figure:
    """Allocated bytes over time as a plotly figure; `ValueError` where none were recorded."""
    import plotly.graph_objects as go

    chart = MemoryChart(trace)
    if not chart.curves:
        raise ValueError(no_curve(trace))
    return go.Figure(chart.picture(*chart.whole_ns))


class MemoryTab(Tab):
    """Answers questions for the memory chart."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._made: MemoryChart | None = None

    @property
    def _chart(self) -> MemoryChart:
        self._made = self._made or MemoryChart(self._scene.trace)
        return self._made

    def first(self) -> Answer:
        """The whole recording, and the largest allocations."""
        trace = self._scene.trace
        if not self._chart.curves:
            return {"empty": no_curve(trace)}
        return {**self._drawn(*self._chart.whole_ns), "largest": largest_allocations(trace)}

    def answer(self, question: Question) -> Answer:
        """The chart of a window, in nanoseconds since the recording began."""
        began = self._chart.whole_ns[0]
        return self._drawn(began + int(question["begin_ns"]), began + int(question["end_ns"]))

    def _drawn(self, begin_ns: int, end_ns: int) -> Answer:
        return {"picture": self._chart.picture(begin_ns, end_ns)}
