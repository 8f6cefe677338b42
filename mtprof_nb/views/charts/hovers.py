"""Hover texts of a timeline, for one event and for many events drawn as one block."""

from __future__ import annotations

from mtprof_nb.analysis.costs import op_costs
from mtprof_nb.analysis.lines.attribution import source_location_of
from mtprof_nb.analysis.nesting import nesting
from mtprof_nb.analysis.operator_rows import shapes_text
from mtprof_nb.analysis.summary import has_steps
from mtprof_nb.model.trace import PHASES, PYTHON, Trace
from mtprof_nb.views.escaped_text import hover
from mtprof_nb.views.units import duration, plural
from mtprof_nb.views.weak_trace import WeakTraceHolder


class Hovers(WeakTraceHolder):
    """Writes plotly labels for one trace; `origin_ns` is the zero of the axis."""

    def __init__(self, trace: Trace, origin_ns: int) -> None:
        super().__init__(trace)
        self._origin_ns = origin_ns

    def event(self, event: int) -> str:
        """Name, times, phase, input shapes and source location of one event."""
        trace = self.trace
        took, own_ns = int(trace.duration_ns[event]), self._own_ns(event)
        own = f" (self {duration(own_ns)})" if own_ns is not None and own_ns != took else ""
        at = duration(int(trace.start_ns[event]) - self._origin_ns)
        lines = [
            f"<b>{hover(trace.names[trace.name[event]])}</b>",
            f"{duration(took)}{own}, at {at}",
            PHASES[trace.phase[event]] + (f", step {trace.step[event]}" if has_steps(trace) else ""),
        ]
        if trace.shape is not None and trace.shape[event] >= 0 and trace.shapes[trace.shape[event]]:
            lines.append(f"inputs {hover(shapes_text(trace.shapes[trace.shape[event]]))}")
        if where := source_location_of(trace, event):
            lines.append(hover(where))
        return "<br>".join(lines)

    def _own_ns(self, event: int) -> int | None:
        """The event's time without what it called; None for an event that is on no thread's stack.

        An op has the self time of the tables, which includes Python functions that it called.
        """
        nested, costs = nesting(self.trace), op_costs(self.trace)
        if nested.depth[event] < 0:
            return None
        is_in_tables = costs.counted[event] and self.trace.kind[event] != PYTHON
        return int(costs.self_ns[event] if is_in_tables else nested.self_ns[event])

    def merged(self, count: int, time_ns: int, extent_ns: int) -> str:
        """The number of events in a block, and their time."""
        return f"<b>{plural(count, 'event')}</b>, {duration(time_ns)} in {duration(extent_ns)}"

    def part(self, title: str, count: int, time_ns: int, longest: int) -> str:
        """The part of a block that is of one family."""
        trace = self.trace
        named = hover(trace.names[trace.name[longest]])
        of_which = f"longest {named}, {duration(int(trace.duration_ns[longest]))}"
        return f"{title}: {plural(count, 'event')}, {duration(time_ns)}<br>{of_which}<br>zoom in to tell them apart"
