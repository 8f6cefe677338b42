"""Averages, or single events, as an aligned text table in torch's layout."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from mtprof_nb.analysis.sort_keys import sort_attribute
from mtprof_nb.analysis.stacks.stack_metrics import METRICS
from mtprof_nb.errors import legible
from mtprof_nb.model.trace import DEVICE_WORK
from mtprof_nb.tables.row_table import Tabular

#: An object with the attributes of torch's `FunctionEventAvg`.
Row = Any

_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}
_FLOPS_UNITS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")
_COLUMN_WIDTH = 12
_SPACING = "  "


def format_time(time_us: float, unit: str | None = None) -> str:
    """A time with a unit that suits it, or with `unit`: `s`, `ms` or `us`."""
    if unit is None:
        unit = "s" if time_us >= 1e6 else "ms" if time_us >= 1e3 else "us"
    return f"{time_us / _UNITS[unit]:.3f}{unit}"


def format_memory(nbytes: int) -> str:
    """Bytes in the largest unit in which they are at least 1."""
    for unit, size in (("GB", 1024**3), ("MB", 1024**2), ("KB", 1024)):
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} B"


def format_share(part: float, whole: float) -> str:
    """A percentage, `NaN` if `whole` is 0."""
    return f"{part * 100 / whole:.2f}%" if whole else "NaN"


def _per_call(attribute: str, doc: str) -> property:
    return property(lambda row: getattr(row, attribute) / row.count if row.count else 0.0, doc=doc)


def _time_text(attribute: str) -> property:
    return property(lambda row: format_time(getattr(row, attribute)), doc=f"`{attribute}` with its unit.")


def _deprecated(name: str) -> property:
    """Torch's older name of a device attribute; reading it warns as torch does."""
    attribute = name.replace("cuda", "device")

    def read(row: Row) -> Any:
        warnings.warn(f"`{name}` is deprecated, please use `{attribute}` instead.", FutureWarning, stacklevel=2)
        return getattr(row, attribute)

    return property(read, doc=f"Deprecated: `{attribute}`.")


class FormattedTimes:
    """Averages per call, and texts of the times of a row or an event, under torch's names."""

    __slots__ = ()

    cpu_time = _per_call("cpu_time_total", "Microseconds of the host per call.")
    device_time = _per_call("device_time_total", "Microseconds of the device per call.")

    cpu_time_str = _time_text("cpu_time")
    cpu_time_total_str = _time_text("cpu_time_total")
    self_cpu_time_total_str = _time_text("self_cpu_time_total")
    device_time_str = _time_text("device_time")
    device_time_total_str = _time_text("device_time_total")
    self_device_time_total_str = _time_text("self_device_time_total")

    cuda_time = _deprecated("cuda_time")
    cuda_time_total = _deprecated("cuda_time_total")
    self_cuda_time_total = _deprecated("self_cuda_time_total")
    cuda_memory_usage = _deprecated("cuda_memory_usage")
    self_cuda_memory_usage = _deprecated("self_cuda_memory_usage")


def sorted_rows(rows: Sequence[Row], attribute: str) -> list[Row]:
    """Rows by one attribute, the largest first; rows that tie, by name."""

    def rank(row: Row) -> tuple[int, Any]:
        value = getattr(row, attribute)
        if value is None:
            return 0, 0
        return (1, value) if isinstance(value, int | float) else (2, str(value))

    return sorted(sorted(rows, key=lambda row: str(row.key)), key=rank, reverse=True)


@dataclass(frozen=True)
class TextColumn:
    """One column: its header, and its text for a row."""

    header: str
    text: Callable[[Row], str]
    width: int = _COLUMN_WIDTH
    align: str = ">"


class TextTable(Tabular):
    """Gives a list of rows torch's `table()`, which is also its text."""

    __slots__ = ()

    def __str__(self) -> str:
        return self.table()

    def supported_export_stacks_metrics(self) -> list[str]:
        """The metrics that `export_stacks` takes."""
        return list(METRICS)

    #: Attributes of a row that `table` can sort by.
    _sort_keys: ClassVar[Sequence[str]]

    def _recorded_columns(self) -> tuple[bool, bool]:
        """Whether memory and FLOPs were recorded: each has columns of its own."""
        raise NotImplementedError

    def _notes(self) -> Sequence[str]:
        """Which part of the run the rows are of, where it was not recorded whole."""
        raise NotImplementedError

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
        """Return the rows as aligned text, "" without rows.

        `sort_by` is an attribute of the rows, the largest first. A negative `row_limit`, or None, shows all rows.
        """
        if time_unit is not None and time_unit not in _UNITS:
            msg = f"time_unit should be one of: {', '.join(_UNITS)}, not {time_unit!r}"
            raise ValueError(msg)
        attribute = sort_attribute(sort_by, self._sort_keys) if sort_by is not None else None
        rows: list[Row] = list(self)  # type: ignore[call-overload]
        if not rows:
            return ""
        if attribute is not None:
            rows = sorted_rows(rows, attribute)
        with_memory, with_flops = self._recorded_columns()
        columns = [
            *_name_columns(rows, max_name_column_width),
            *_time_columns(rows, time_unit),
            *_memory_columns(rows, with_memory),
            TextColumn("# of Calls", lambda row: str(row.count)),
            *_shapes_column(rows, max_shapes_column_width),
            *_flops_column(rows, with_flops),
        ]
        source = _source_column(rows, max_src_column_width)
        shown = [row for row in rows if row.cpu_parent is None] if top_level_events_only else rows
        shown = shown if row_limit is None or row_limit < 0 else shown[:row_limit]
        body = _Body(columns, source, shown)
        lines = ["=" * body.line_length, header] if header is not None else []
        if top_level_events_only:
            lines += ["=" * body.line_length, "This report only display top-level ops statistics"]
        notes = (f"Note: {legible(note)}" for note in self._notes())
        return "\n".join([*lines, *body.lines(), *_totals(rows, time_unit), *notes]) + "\n"


class _Body:
    """Cells of the shown rows, in columns as wide as torch's, or wider where a cell would not fit."""

    def __init__(self, columns: list[TextColumn], source: TextColumn | None, rows: Sequence[Row]) -> None:
        self._columns = [*columns, source] if source else columns
        self._source = source
        self._rows = rows
        self._cells = [[column.text(row) for column in self._columns] for row in rows]
        self._widths = [
            max(column.width, len(column.header), *(len(cells[index]) for cells in self._cells), 0)
            for index, column in enumerate(self._columns)
        ]

    @property
    def line_length(self) -> int:
        return sum(self._widths) + len(_SPACING) * (len(self._widths) - 1)

    def lines(self) -> Iterator[str]:
        """The header and the rows between rules; further frames of a row have lines of their own."""
        rule = "".join("-" * width + _SPACING for width in self._widths)
        yield from (rule, self._line([column.header for column in self._columns]), rule)
        for row, cells in zip(self._rows, self._cells, strict=True):
            yield self._line(cells)
            if self._source is not None:
                blank = [""] * (len(self._columns) - 1)
                for frame in (*(row.stack or ())[1:], ""):
                    yield self._line([*blank, cut_front(frame, self._source.width)])
        yield rule

    def _line(self, cells: Sequence[str]) -> str:
        return "".join(
            f"{legible(cell):{column.align}{width}}{_SPACING}"
            for cell, column, width in zip(cells, self._columns, self._widths, strict=True)
        )


def _limited(width: int, limit: int | None) -> int:
    return width if limit is None else min(width, limit)


def cut_front(text: str, width: int) -> str:
    """Cut a text at the front if it is too long: the end of a path says most."""
    return text if len(text) <= width else "..."[:width] + text[len(text) - width + 3 :]


def _name_columns(rows: Sequence[Row], limit: int | None) -> list[TextColumn]:
    width = _limited(max(len(row.key) for row in rows) + 4, limit)

    def cut(name: str) -> str:
        return f"{name[: limit - 3]}..." if limit is not None and len(name) >= limit - 3 else name

    columns = [TextColumn("Name", lambda row: cut(row.key), width)]
    if any(row.overload_name for row in rows):
        columns.append(TextColumn("Overload Name", lambda row: cut(row.overload_name or ""), width))
    return columns


def _time_columns(rows: Sequence[Row], unit: str | None) -> list[TextColumn]:
    cpu_us, device_us = self_cpu_time(rows), self_device_time(rows)
    columns = [
        TextColumn("Self CPU %", lambda row: format_share(row.self_cpu_time_total, cpu_us)),
        TextColumn("Self CPU", lambda row: format_time(row.self_cpu_time_total, unit)),
        TextColumn("CPU total %", lambda row: "0" if row.is_async else format_share(row.cpu_time_total, cpu_us)),
        TextColumn("CPU total", lambda row: format_time(row.cpu_time_total, unit)),
        TextColumn("CPU time avg", lambda row: format_time(row.cpu_time, unit)),
    ]
    if device := _device_with_time(rows):
        columns += [
            TextColumn(f"Self {device}", lambda row: format_time(row.self_device_time_total, unit)),
            TextColumn(f"Self {device} %", lambda row: format_share(row.self_device_time_total, device_us)),
            TextColumn(f"{device} total", lambda row: format_time(row.device_time_total, unit)),
            TextColumn(f"{device} time avg", lambda row: format_time(row.device_time, unit)),
        ]
    return columns


def _device_with_time(rows: Sequence[Row]) -> str | None:
    return _device_name(rows) if any(row.self_device_time_total > 0 for row in rows) else None


def _device_name(rows: Sequence[Row]) -> str:
    return next((row.use_device for row in rows if row.use_device), "device").upper()


def self_cpu_time(rows: Sequence[Row]) -> float:
    """Self time of all rows on the host, in microseconds."""
    total: float = sum(row.self_cpu_time_total for row in rows)
    return total


def self_device_time(rows: Sequence[Row]) -> float:
    """Microseconds of all work on devices. An op's device time is that of its kernels, so ops do not count again."""
    total: float = sum(row.self_device_time_total for row in rows if row.kind in DEVICE_WORK)
    return total


def _memory_columns(rows: Sequence[Row], profile_memory: bool) -> list[TextColumn]:
    if not profile_memory:
        return []
    columns = [
        TextColumn("CPU Mem", lambda row: format_memory(row.cpu_memory_usage)),
        TextColumn("Self CPU Mem", lambda row: format_memory(row.self_cpu_memory_usage)),
    ]
    if any(row.self_device_memory_usage > 0 for row in rows):
        device = _device_name(rows)
        columns += [
            TextColumn(f"{device} Mem", lambda row: format_memory(row.device_memory_usage)),
            TextColumn(f"Self {device} Mem", lambda row: format_memory(row.self_device_memory_usage)),
        ]
    return columns


def _shapes_column(rows: Sequence[Row], limit: int | None) -> list[TextColumn]:
    if not any(row.input_shapes for row in rows):
        return []
    width = _limited(max(len(str(row.input_shapes)) for row in rows) + 4, limit)
    return [TextColumn("Input Shapes", lambda row: str(row.input_shapes)[:width], width)]


def _flops_column(rows: Sequence[Row], with_flops: bool) -> list[TextColumn]:
    """The column of FLOPs, in the unit that suits the smallest number."""
    known = [row.flops for row in rows if with_flops and row.flops and row.flops > 0]
    if not known:
        return []
    thousands = min(int(math.log10(min(known)) / 3), len(_FLOPS_UNITS) - 1)
    scale = 1000.0**thousands
    return [
        TextColumn(f"Total {_FLOPS_UNITS[thousands]}", lambda row: f"{row.flops / scale:8.3f}" if row.flops else "--"),
    ]


def _source_column(rows: Sequence[Row], limit: int | None) -> TextColumn | None:
    stacks = [row.stack for row in rows if row.stack]
    if not stacks:
        return None
    width = _limited(max(len(entry) for stack in stacks for entry in stack) + 4, limit)
    return TextColumn("Source Location", lambda row: cut_front(row.stack[0], width) if row.stack else "", width, "<")


def _totals(rows: Sequence[Row], unit: str | None) -> list[str]:
    total = format_time(self_cpu_time(rows), unit)
    lines = [f"Self CPU time total: {total}"]
    if device := _device_with_time(rows):
        lines.append(f"Self {device} time total: {format_time(self_device_time(rows), unit)}")
    return [*lines, f"Total: {total}  Count: {sum(row.count for row in rows)}"]
