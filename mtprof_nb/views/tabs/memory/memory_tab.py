"""Memory over time: the bytes that each device held, their peak, and the largest allocations."""

from __future__ import annotations

import numpy as np

from mtprof_nb.analysis.devices.recorded_devices import Device
from mtprof_nb.analysis.lines.attribution import source_location_at
from mtprof_nb.analysis.memory.allocation_pairs import releases_of
from mtprof_nb.analysis.memory.memory_categories import Category, categories
from mtprof_nb.analysis.memory.memory_curve import (
    Allocation,
    MemoryCurve,
    callers,
    largest_kinds,
    memory_curve,
    memory_devices,
    rows_of_device,
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
    TableColumn("nbytes", "Size", "bytes", "bytes of the largest of these allocations"),
    TableColumn("count", "Number", "count", "allocations by the same op on the same line"),
    TableColumn("total_bytes", "Together", "bytes", "bytes of all of them, whenever they were held"),
    TableColumn("at_ns", "At", "time", "when the largest was made, since the recording began"),
    TableColumn("held_ns", "Held for", "held", "how long until the largest was released"),
)
#: Titles and colours of the kinds of memory, from the bottom of the chart to its top.
KINDS = {
    Category.PARAMETER: ("parameter", "#2e7d32"),
    Category.OPTIMIZER_STATE: ("optimizer state", "#c9971c"),
    Category.INPUT: ("input", "#546e7a"),
    Category.TEMPORARY: ("temporary", "#8e6bbf"),
    Category.ACTIVATION: ("activation", "#d14a3d"),
    Category.GRADIENT: ("gradient", "#2f5fb3"),
    Category.AUTOGRAD_DETAIL: ("autograd detail", "#6f97d8"),
    Category.UNKNOWN: ("unknown", "#9e9e9e"),
}


def outline(curve: MemoryCurve, begin_ns: int, end_ns: int, most: int = MOST_POINTS) -> Int64:
    """Positions to draw in a window."""
    first = max(int(np.searchsorted(curve.time_ns, begin_ns, side="right")) - 1, 0)
    last = min(int(np.searchsorted(curve.time_ns, end_ns, side="left")) + 1, len(curve.time_ns))
    return first + thinned(curve.allocated[first:last], most)


def held_by_kind(trace: Trace, device: Device) -> dict[Category, Int64]:
    """Bytes of each kind after each change of a device's curve; {} where no kind is known.

    Blocks from before the recording are unknown. A count that jumps begins a new window of the
    recording, which knows none of the blocks from before it.
    """
    records = trace.allocations
    if records is None:
        return {}
    rows = rows_of_device(trace, records, device)
    nbytes, total = records.nbytes[rows], records.total[rows]
    begins = np.flatnonzero(np.diff(total) != nbytes[1:]) + 1
    window = np.zeros(len(records), np.int64)
    window[rows[begins]] = 1
    window = np.cumsum(window)
    partner = releases_of(trace, records)
    is_foreign = (records.nbytes < 0) & (window[partner] != window)
    # A block without an address cannot be followed to its release.
    is_unknown = is_foreign | (records.address == 0)
    category = np.where(is_unknown, Category.UNKNOWN, categories(trace))[rows]
    held: dict[Category, Int64] = {}
    for kind in KINDS.keys() & set(category.tolist()) - {Category.UNKNOWN}:
        count = np.cumsum(np.where(category == kind, nbytes, 0))
        held[kind] = count - np.append(0, count[begins - 1])[window[rows]]
    return {**held, Category.UNKNOWN: total - sum(held.values())} if held else {}


class MemoryChart(WeakTraceHolder):
    """The memory of one trace, which can be drawn for any window."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        curves = [(device, memory_curve(trace, device)) for device in memory_devices(trace)]
        self.curves = [(device, curve) for device, curve in curves if len(curve.time_ns)]
        self._kinds = [held_by_kind(trace, device) for device, _ in self.curves]
        self.whole_ns = (trace.began_ns, trace.began_ns + max(span_ns(trace), 1))

    def window(self, begin_ns: int, end_ns: int, most: int = MOST_POINTS) -> Answer:
        """Columns of each curve in a window, and its peak in the whole; times are since the recording began."""
        curves = [self._curve(number, (begin_ns, end_ns), most) for number in range(len(self.curves))]
        names, lines = (
            [at for curve in curves for at in (*curve[key], curve["peak"][key])] for key in ("name", "line")
        )
        return {
            "drawn_ns": [begin_ns - self.whole_ns[0], end_ns - self.whole_ns[0]],
            "curves": curves,
            "texts": texts_of(self.trace, names, (), lines),
        }

    def _curve(self, number: int, window: tuple[int, int], most: int) -> Answer:
        device, curve = self.curves[number]
        positions = outline(curve, *window, most)
        peak = self._points(curve, np.array([curve.allocated.argmax()]))
        kinds = [
            {"title": title, "colour": colour, "nbytes": held[positions].tolist()}
            for kind, (title, colour) in KINDS.items()
            if (held := self._kinds[number].get(kind)) is not None and held.any()
        ]
        return {
            "title": shown(str(device)),
            **self._points(curve, positions),
            "peak": {key: column[0] for key, column in peak.items()},
            "kinds": kinds,
        }

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


def largest_allocations(trace: Trace) -> Answer:
    """Columns of the largest allocations: size, time and kind of the largest of each group, and the sum."""
    groups = [
        (group, device.owner) for device in memory_devices(trace) for group in largest_kinds(trace, device, LARGEST)
    ]
    groups = sorted(groups, key=lambda one: (-one[0].largest.nbytes, one[0].largest.allocated_ns))[:LARGEST]
    blocks = [group.largest for group, _ in groups]
    names = [int(trace.name[block.event]) if block.event >= 0 else -1 for block in blocks]
    return {
        "id": list(range(len(blocks))),
        "event": [block.event for block in blocks],
        "name": names,
        "line": [block.line for block in blocks],
        "label": [shown(trace.names[name]) if name >= 0 else "outside any op" for name in names],
        "detail": [shown(_detail(trace, group.largest, owner)) for group, owner in groups],
        "columns": [column._asdict() for column in _LARGEST_COLUMNS],
        "value": {
            "nbytes": [block.nbytes for block in blocks],
            "count": [group.number for group, _ in groups],
            "total_bytes": [group.nbytes for group, _ in groups],
            "at_ns": [block.allocated_ns - trace.began_ns for block in blocks],
            "held_ns": [
                None if block.released_ns is None else block.released_ns - block.allocated_ns for block in blocks
            ],
        },
    }


def _detail(trace: Trace, block: Allocation, owner: str) -> str:
    """The process if there are several, the caller of the op that allocated, the kind, and the source location."""
    caller = int(callers(trace, np.array([block.event], np.int32))[0])
    called = f"in {trace.names[trace.name[caller]]}" if caller >= 0 else ""
    kind = "" if block.category == Category.UNKNOWN else KINDS[block.category][0]
    return ", ".join(filter(None, (owner, called, kind, source_location_at(trace, block.line))))


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
        devices = [str(device) for device, _ in chart.curves]
        return {
            **chart.window(*chart.whole_ns),
            "device": devices.index(device) if (device := self._scene.memory_of) in devices else -1,
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
