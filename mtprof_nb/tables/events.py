"""The events of a trace as a list, with the methods of torch's list of events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import numpy as np

from mtprof_nb.analysis.costs import averaged_costs
from mtprof_nb.analysis.summary import coverage_notes
from mtprof_nb.model.merge import merge
from mtprof_nb.model.trace import Int64, Trace
from mtprof_nb.tables.averages import SORT_KEYS, EventList, FunctionEventAvg, key_averages
from mtprof_nb.tables.event import Event
from mtprof_nb.tables.event_columns import Column, event_columns
from mtprof_nb.tables.table import Table, TableColumn
from mtprof_nb.tables.text_table import TextTable
from mtprof_nb.tables.writers.as_dataframe import data_frame

if TYPE_CHECKING:
    import pandas as pd


class Events(TextTable, MutableSequence[Event]):
    """The events of a trace ordered by start, as a list that can be changed. Its methods cover the events it holds.

    As in torch's list, bookkeeping ops are left out, and an event stands for its only child if that has the same name.
    `key_averages()` counts the same events and the same time. Event objects are created on access; changing the list
    creates all of them.
    """

    _sort_keys = SORT_KEYS

    def __init__(self, trace: Trace, held: Iterable[Event] | None = None) -> None:
        self._trace = trace
        #: Positions of the counted events of the trace; not used once `_held` has the events.
        self._positions = _counted(trace) if held is None else []
        #: None while the list is unchanged.
        self._held = None if held is None else [_checked(event) for event in held]

    def _changeable(self) -> list[Event]:
        if self._held is None:
            self._held = list(self)
        return self._held

    def __len__(self) -> int:
        return len(self._positions) if self._held is None else len(self._held)

    @overload
    def __getitem__(self, index: SupportsIndex) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> Events: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Event | Events:
        if isinstance(index, slice):
            if self._held is not None:
                return Events(self._trace, self._held[index])
            return Events(self._trace, (Event(self._trace, position) for position in self._positions[index]))
        return Event(self._trace, self._positions[index]) if self._held is None else self._held[index]

    @overload
    def __setitem__(self, index: SupportsIndex, value: Event) -> None: ...
    @overload
    def __setitem__(self, index: slice, value: Iterable[Event]) -> None: ...
    def __setitem__(self, index: Any, value: Any) -> None:
        checked = [_checked(event) for event in value] if isinstance(index, slice) else _checked(value)
        self._changeable()[index] = checked

    def __delitem__(self, index: SupportsIndex | slice) -> None:
        del self._changeable()[index]

    def insert(self, index: SupportsIndex, value: Event) -> None:
        """Insert an event before the one at `index`; `TypeError` for any other object."""
        self._changeable().insert(index, _checked(value))

    def sort(self, *, key: Callable[[Event], Any], reverse: bool = False) -> None:
        self._changeable().sort(key=key, reverse=reverse)

    def reverse(self) -> None:
        self._changeable().reverse()

    def clear(self) -> None:
        self._held = []

    def copy(self) -> Events:
        """Return a list of the same events."""
        return Events(self._trace, self._held)

    def __add__(self, other: Iterable[Event]) -> Events:
        return Events(self._trace, [*self, *other])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Events | list):
            return NotImplemented
        return len(self) == len(other) and all(mine == its for mine, its in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # as a list

    def __iter__(self) -> Iterator[Event]:
        trace = self._trace
        return iter(self._held) if self._held is not None else (Event(trace, at) for at in self._positions)

    def __repr__(self) -> str:
        return f"<Events: {len(self):,}>"

    def _chosen(self) -> dict[Trace, Int64]:
        """Positions of the events in the list, by recording."""
        by_trace: dict[Trace, list[int]] = {} if self._held else {self._trace: []}
        for event in self._held or ():
            by_trace.setdefault(event.trace, []).append(event.id)
        return {trace: np.array(positions, np.int64) for trace, positions in by_trace.items()}

    @property
    def function_events(self) -> Events:
        """The list itself, under the name in torch's low-level profiler."""
        return self

    @property
    def self_cpu_time_total(self) -> float:
        """Self time of all events on the host, in microseconds."""
        return self.key_averages(include_python_functions=True).self_cpu_time_total

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool = False,
    ) -> EventList:
        """Group the events by name and device, and by the keys that are asked for."""
        by = (group_by_input_shapes, group_by_stack_n, group_by_overload_name, include_python_functions)
        if self._held is None:
            return key_averages(self._trace, *by)
        first, *others = [key_averages(trace, *by, positions=chosen) for trace, chosen in self._chosen().items()]
        rows = first.like(row for averages in (first, *others) for row in averages)
        return rows.key_averages(*by) if others else rows

    def total_average(self) -> FunctionEventAvg:
        """The sum of all events, with the key `Total`."""
        return self.key_averages(include_python_functions=True).total_average()

    def _recorded_columns(self) -> tuple[bool, bool]:
        recorded = [trace.recorded for trace in ((self._trace,) if self._held is None else self._chosen())]
        return any(one.profile_memory for one in recorded), any(one.with_flops for one in recorded)

    def _notes(self) -> Sequence[str]:
        return coverage_notes(self._trace)

    def to_dataframe(self) -> pd.DataFrame:
        """A pandas DataFrame with one row per event and a column for each key that was recorded. Needs pandas.

        A number that an event lacks is NaN, another fact None.
        """
        # By columns, because a row for each of millions of events would take minutes.
        return super().to_dataframe() if self._held is not None else data_frame(self._columns()[self._trace])

    def facts(self) -> Table:
        """The data: a row for each event, a column for each key that was recorded."""
        columns = self._columns()
        keys = list(dict.fromkeys(key for of_trace in columns.values() for key in of_trace))
        rows_of = {trace: _rows(of_trace, keys) for trace, of_trace in columns.items()}
        rows = [next(rows_of[event.trace]) for event in self]
        return Table([TableColumn(key) for key in keys], rows)

    def _columns(self) -> dict[Trace, dict[str, Column]]:
        """The columns of the events in the list, by recording."""
        positions = np.array(self._positions, np.int64)
        chosen = {self._trace: positions} if self._held is None else self._chosen()
        return {trace: event_columns(trace, positions) for trace, positions in chosen.items()}

    def export_stacks(self, path: str | PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Write collapsed stacks for flamegraph.pl or speedscope."""
        from mtprof_nb.export.collapsed_stacks import write
        from mtprof_nb.tables.averages_files import write_stacks

        if self._held is None:
            write(self._trace, path, metric)
        else:
            write_stacks(self, path, metric)

    def export_chrome_trace(self, path: str | PathLike[str]) -> None:
        """Write the events for Perfetto, chrome://tracing or HolisticTraceAnalysis: `.json` or `.json.gz`."""
        from mtprof_nb.export.chrome_trace import write

        write(self._trace if self._held is None else self._recording(), path)

    def _recording(self) -> Trace:
        """A recording with only the events in the list, each once."""
        parts = [trace.take(np.unique(positions)) for trace, positions in self._chosen().items()]
        return merge([replace(part, allocations=None) for part in parts])


def _counted(trace: Trace) -> range | list[int]:
    counted = averaged_costs(trace).counted
    return range(len(trace)) if counted.all() else np.flatnonzero(counted).tolist()


def _rows(columns: dict[str, Column], keys: list[str]) -> Iterator[tuple[Any, ...]]:
    """The values of `keys` for each event; None for what it lacks."""
    absent = [None] * len(columns["name"])
    return zip(*(columns[key].tolist() if key in columns else absent for key in keys), strict=True)


def _checked(value: object) -> Event:
    if not isinstance(value, Event):
        msg = f"a list of events can hold only events of a profile, not {value!r}: take them from events()"
        raise TypeError(msg)
    return value
