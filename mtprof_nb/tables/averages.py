"""torch's averages: a list of `FunctionEventAvg` rows, one for each group of events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any, SupportsIndex, overload

import numpy as np

from mtprof_nb.analysis.costs import loose_allocations
from mtprof_nb.analysis.fields import entry
from mtprof_nb.analysis.groups import Groups, Key, flat_shapes, frames_key, group
from mtprof_nb.analysis.sort_keys import TORCH_KEYS
from mtprof_nb.analysis.summary import coverage_notes
from mtprof_nb.errors import shown
from mtprof_nb.model.trace import PYTHON, Int64, Trace
from mtprof_nb.tables.event import DeviceName, Event, used_device
from mtprof_nb.tables.row_table import facts_of
from mtprof_nb.tables.table import Table
from mtprof_nb.tables.text_table import FormattedTimes, TextTable, self_cpu_time

#: Attributes that are sums, and the column of `Groups` that each one is.
_SUMMED = {name: column for name, column in TORCH_KEYS.items() if name not in ("cpu_time", "key")}
_TAKEN_FROM_FIRST = (
    *("key", "kind", "scope", "device_type", "use_device", "node_id"),
    *("is_async", "is_remote", "is_legacy", "is_user_annotation"),
)


class FunctionEventAvg(FormattedTimes):
    """One row of averages: the summed cost of a group of events, in microseconds and bytes."""

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = 0
        self.node_id = 0
        self.kind = "op"
        self.is_async = False
        self.is_remote = False
        self.use_device: str | None = None
        self.cpu_time_total = 0.0
        self.device_time_total = 0.0
        self.self_cpu_time_total = 0.0
        self.self_device_time_total = 0.0
        self.input_shapes: list[Any] | str | None = None
        self.overload_name: str | None = None
        self.stack: list[str] | None = None
        self.scope: int | None = None
        self.cpu_memory_usage = 0
        self.device_memory_usage = 0
        self.self_cpu_memory_usage = 0
        self.self_device_memory_usage = 0
        self.device_type = DeviceName("CPU")
        self.is_legacy = False
        self.is_user_annotation = False
        self.flops = 0
        self._first: Event | None = None

    @property
    def cpu_parent(self) -> Event | None:
        """The parent of the first event of the group."""
        return self._first.cpu_parent if self._first is not None else None

    @property
    def cpu_children(self) -> list[Event]:
        """The children of the first event of the group."""
        return self._first.cpu_children if self._first is not None else []

    def add(self, other: object) -> FunctionEventAvg:
        """Add another row or event of the same key; `AssertionError` for anything else, as in torch."""
        if not isinstance(other, FunctionEventAvg | Event):
            msg = f"expected a FunctionEventAvg or an Event, not {type(other).__name__}: add rows of key_averages()"
            raise AssertionError(msg)
        if self.key is not None and self.key != other.key:
            msg = f"expected the key {self.key!r}, not {other.key!r}: add rows of one key"
            raise AssertionError(msg)
        self.take_in(other)
        return self

    __iadd__ = add

    def take_in(self, other: FunctionEventAvg | Event) -> None:
        """Add the costs of `other`, whatever its key; an empty row also copies its other attributes."""
        if self.key is None:
            self.begin_as(other)
            self.overload_name, self.input_shapes, self.stack = other.overload_name, other.input_shapes, other.stack
        for attribute in _SUMMED:
            setattr(self, attribute, getattr(self, attribute) + getattr(other, attribute))

    def begin_as(self, other: FunctionEventAvg | Event) -> None:
        """Copy the attributes of `other`, but not its costs."""
        for attribute in _TAKEN_FROM_FIRST:
            setattr(self, attribute, getattr(other, attribute))
        self._first = other if isinstance(other, Event) else other._first

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={shown(str(self.key))} count={self.count} "
            f"self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str} self_device_time={self.self_device_time_total_str} "
            f"device_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} device_memory_usage={self.device_memory_usage}>"
        )


def _public_attributes(row: FunctionEventAvg) -> tuple[str, ...]:
    properties = {
        name for kind in type(row).__mro__ for name, value in vars(kind).items() if isinstance(value, property)
    }
    return tuple(sorted(name for name in {*vars(row), *properties} if not name.startswith("_") and "cuda" not in name))


#: Attributes that a table can be sorted by: all that are not deprecated.
SORT_KEYS = _public_attributes(FunctionEventAvg())
#: The columns of `EventList.to_dataframe`.
DATAFRAME_COLUMNS = (
    *("key", "kind", "device_type", "is_user_annotation", "overload_name", "input_shapes", "stack", "count"),
    *("self_cpu_time_total", "cpu_time_total", "cpu_time"),
    *("self_device_time_total", "device_time_total", "device_time"),
    *("self_cpu_memory_usage", "cpu_memory_usage", "self_device_memory_usage", "device_memory_usage", "flops"),
)


class EventList(TextTable, list[FunctionEventAvg]):
    """A list of rows. Every method answers for the rows that the list holds when it is called."""

    _sort_keys = SORT_KEYS

    def __init__(
        self,
        rows: Iterable[FunctionEventAvg] = (),
        *,
        use_device: str | None = None,
        profile_memory: bool = False,
        with_flops: bool = False,
        notes: Sequence[str] = (),
    ) -> None:
        super().__init__(rows)
        self._coverage = notes
        self._use_device = use_device
        self._profile_memory = profile_memory
        self._with_flops = with_flops

    def like(self, rows: Iterable[FunctionEventAvg]) -> EventList:
        """A list of `rows` with the columns of this list."""
        return EventList(
            rows,
            use_device=self._use_device,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
            notes=self._coverage,
        )

    @overload
    def __getitem__(self, index: SupportsIndex) -> FunctionEventAvg: ...
    @overload
    def __getitem__(self, index: slice) -> EventList: ...
    def __getitem__(self, index: SupportsIndex | slice) -> FunctionEventAvg | EventList:
        return self.like(super().__getitem__(index)) if isinstance(index, slice) else super().__getitem__(index)

    def copy(self) -> EventList:
        """Return a list of the same rows."""
        return self.like(self)

    @property
    def self_cpu_time_total(self) -> float:
        """Self time of all rows on the host, in microseconds."""
        return self_cpu_time(self)

    def _recorded_columns(self) -> tuple[bool, bool]:
        return self._profile_memory, self._with_flops

    def _notes(self) -> Sequence[str]:
        return self._coverage

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool = False,
    ) -> EventList:
        """Group the rows again, by less than they are grouped by now."""
        merged: dict[tuple[Any, ...], FunctionEventAvg] = {}
        for row in self:
            if row.kind == "python" and not include_python_functions:
                continue
            key: tuple[Any, ...] = (row.key, row.device_type, row.kind)
            shapes = row.input_shapes if group_by_input_shapes else ""
            frames = (row.stack or [])[:group_by_stack_n]
            overload_name = row.overload_name if group_by_overload_name else ""
            into = merged.setdefault((*key, str(shapes), tuple(frames), overload_name), FunctionEventAvg())
            into.add(row)
            into.input_shapes, into.stack, into.overload_name = shapes, frames, overload_name
        return self.like(merged.values())

    def total_average(self) -> FunctionEventAvg:
        """The sum of all rows, with the key `Total`."""
        total = FunctionEventAvg()
        for row in self:
            total.take_in(row)
        total.key = "Total"
        return total

    def facts(self) -> Table:
        """The data: a column for each of `DATAFRAME_COLUMNS`, times in torch's microseconds."""
        return facts_of(self, DATAFRAME_COLUMNS)

    def export_stacks(self, path: str | PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Write the rows' stacks, root first, each with its metric: `a;b;c 123`."""
        from mtprof_nb.tables.averages_files import write_stacks

        write_stacks(self, path, metric)

    def export_chrome_trace(self, path: str | PathLike[str]) -> None:
        """Write one `X` event for each row, as long as the row's total time."""
        from mtprof_nb.tables.averages_files import write_chrome_trace

        write_chrome_trace(self, path)


def key_averages(
    trace: Trace,
    group_by_input_shape: bool = False,
    group_by_stack_n: int = 0,
    group_by_overload_name: bool = False,
    include_python_functions: bool = False,
    positions: Int64 | None = None,
) -> EventList:
    """The events of `trace` grouped by name and device, and by shapes, innermost frames or overload where asked.

    Rows come in the order in which their first events started. Calls of Python functions have rows only where
    `include_python_functions` asks for them; what they cost is never added to the rows around them. `positions`
    chooses events, and the order.
    """
    keys: list[str | Key] = ["name", "device", "kind"]
    if group_by_overload_name:
        keys.append("overload")
    if group_by_input_shape:
        keys.append("flat_shapes")
    if group_by_stack_n > 0:
        keys.append(frames_key(group_by_stack_n))
    groups = group(trace, *keys, positions=positions)
    shown = np.flatnonzero(include_python_functions | (trace.kind[groups.first] != PYTHON))
    first_events = groups.first[shown]
    rows = _rows(trace, groups, shown)
    for row, first in zip(rows, first_events.tolist(), strict=True):
        event = Event(trace, first)
        row.overload_name = event.overload_name if group_by_overload_name else ""
        shapes = flat_shapes(entry(trace.shape, trace.shapes, first) or ())
        row.input_shapes = [list(sizes) for sizes in shapes] if group_by_input_shape else ""
        row.stack = event.stack[:group_by_stack_n] if group_by_stack_n > 0 else []
    if positions is None:
        rows = _with_loose_memory(trace, trace.start_ns[first_events], rows, [] if group_by_input_shape else "")
    return EventList(
        rows,
        use_device=used_device(trace),
        profile_memory=trace.recorded.profile_memory,
        with_flops=trace.recorded.with_flops,
        notes=coverage_notes(trace),
    )


def _rows(trace: Trace, groups: Groups, shown: Int64) -> list[FunctionEventAvg]:
    rows = [FunctionEventAvg() for _ in shown]
    for row, first in zip(rows, groups.first[shown].tolist(), strict=True):
        row.begin_as(Event(trace, first))
    for attribute, column in _SUMMED.items():
        values = getattr(groups, column)[shown]
        for row, value in zip(rows, (values / 1000 if column.endswith("_ns") else values).tolist(), strict=True):
            setattr(row, attribute, value)
    return rows


def _with_loose_memory(
    trace: Trace, starts_ns: Int64, rows: list[FunctionEventAvg], shapes: list[Any] | str
) -> list[FunctionEventAvg]:
    """`rows` and, in order of time, torch's `[memory]` row: what was allocated or released outside all events."""
    loose, records = loose_allocations(trace), trace.allocations
    if records is None or not len(loose):
        return rows
    on_cpu = np.array([device == "CPU" for device in trace.devices])[records.device[loose]]
    nbytes = records.nbytes[loose]
    row = FunctionEventAvg()
    row.key, row.node_id, row.scope, row.count = "[memory]", -1, 0, len(loose)
    row.input_shapes, row.stack, row.overload_name, row.use_device = shapes, [], "", used_device(trace)
    row.cpu_memory_usage = row.self_cpu_memory_usage = int(nbytes[on_cpu].sum())
    row.device_memory_usage = row.self_device_memory_usage = int(nbytes[~on_cpu].sum())
    position = int(np.searchsorted(starts_ns, records.time_ns[loose[0]]))
    return [*rows[:position], row, *rows[position:]]
