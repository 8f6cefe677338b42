"""The events of a trace as a sequence of views, which answers as torch's list of events does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from typing import TYPE_CHECKING, overload

from mtprof_nb.analysis.stacks import METRICS
from mtprof_nb.event import Event
from mtprof_nb.table import build_table
from mtprof_nb.trace import Trace

if TYPE_CHECKING:
    from mtprof_nb.averages import EventList, FunctionEventAvg


class Events(Sequence[Event]):
    """All events of a trace, ordered by start. Event objects are made when they are asked for."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def __len__(self) -> int:
        return len(self._trace)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> list[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | list[Event]:
        positions = range(len(self._trace))[index]
        if isinstance(positions, range):
            return [Event(self._trace, position) for position in positions]
        return Event(self._trace, positions)

    def __iter__(self) -> Iterator[Event]:
        trace = self._trace
        return (Event(trace, position) for position in range(len(trace)))

    def __repr__(self) -> str:
        return f"<Events: {len(self):,}>"

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of the host in all events; no moment of a thread counts twice."""
        return self.key_averages(include_python_functions=True).self_cpu_time_total

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool = False,
    ) -> EventList:
        """The events grouped by name and device, and by what else is asked for; Python calls only where asked for."""
        from mtprof_nb.averages import key_averages

        return key_averages(
            self._trace, group_by_input_shapes, group_by_stack_n, group_by_overload_name, include_python_functions
        )

    def total_average(self) -> FunctionEventAvg:
        """All events in one row, whose key is `Total`."""
        return self.key_averages(include_python_functions=True).total_average()

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int | None = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """A text table with a row an event; options as for `EventList.table`."""
        from mtprof_nb.averages import SORT_KEYS

        return build_table(
            self,
            attributes=SORT_KEYS,
            sort_by=sort_by,
            row_limit=row_limit,
            max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width,
            header=header,
            profile_memory=self._trace.recorded.profile_memory,
            with_flops=self._trace.recorded.with_flops,
            top_level_events_only=top_level_events_only,
            time_unit=time_unit,
        )

    def supported_export_stacks_metrics(self) -> list[str]:
        """The metrics that `export_stacks` takes."""
        return list(METRICS)

    def export_stacks(self, path: str | PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Write collapsed stacks for flamegraph.pl or speedscope."""
        from mtprof_nb.export.stacks import write

        write(self._trace, path, metric)

    def export_chrome_trace(self, path: str | PathLike[str]) -> None:
        """Write the trace for Perfetto, chrome://tracing or HolisticTraceAnalysis: `.json` or `.json.gz`."""
        from mtprof_nb.export.chrome_trace import write

        write(self._trace, path)
