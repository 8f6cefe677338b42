"""Rows of kernels, copies and collectives, each list with its text and its DataFrame."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

from mtprof_nb.analysis.devices.kernel_groups import collective_groups, copy_groups, kernel_groups
from mtprof_nb.analysis.devices.kernel_keys import collective_of_event, direction_of, launch_shape, op_of_kernel
from mtprof_nb.analysis.devices.recorded_devices import device_numbers, device_work
from mtprof_nb.analysis.groups import Groups
from mtprof_nb.model.trace import KINDS, Trace
from mtprof_nb.tables.row_list import RowList
from mtprof_nb.tables.text_table import aligned, data_frame, format_memory, format_share, format_time

if TYPE_CHECKING:
    import pandas as pd

R = TypeVar("R", bound="DeviceRow")
_NAME_WIDTH = 60


@dataclass(frozen=True, kw_only=True)
class DeviceRow:
    """Events of one device that are alike: their number, their time, and the bytes that they moved."""

    device: str
    count: int
    time_ns: int
    #: The share of the time of all work on devices.
    share: float
    #: None if not known.
    moved_bytes: int | None

    @property
    def gb_per_s(self) -> float | None:
        """Bytes a nanosecond, which are gigabytes a second; None if the bytes are not known."""
        return None if self.moved_bytes is None or not self.time_ns else self.moved_bytes / self.time_ns


@dataclass(frozen=True, kw_only=True)
class KernelRow(DeviceRow):
    """Kernels of one name that belong to one op and were launched in one way; also copies, sets and collectives."""

    name: str
    #: `kernel`, `copy`, `set` or `collective`.
    kind: str
    #: The op that they belong to, or the region of torch.compile, the launch of a graph, a scope; "" if not known.
    op: str
    stream: str
    #: Sizes; () if not known.
    grid: tuple[int, ...]
    block: tuple[int, ...]
    min_ns: int
    max_ns: int
    #: Estimated occupancy in percent, weighed by time; None if not known.
    occupancy: float | None


@dataclass(frozen=True, kw_only=True)
class CopyRow(DeviceRow):
    """Copies of one direction."""

    #: `HtoD` from the host to the device, `DtoH`, `DtoD`, `PtoP`; "" if not known.
    direction: str
    #: Kinds of memory, as `Pageable -> Device`; "" if not known.
    memories: str


@dataclass(frozen=True, kw_only=True)
class CollectiveRow(DeviceRow):
    """Collectives of one name, group of processes and element type; "" and -1 stand for what is not known."""

    name: str
    group: str
    group_size: int
    dtype: str


class DeviceRows(RowList[R]):
    """Rows of one kind, those with the most time first."""

    def __init__(self, kind: type[R], rows: list[R]) -> None:
        self._kind = kind
        super().__init__(sorted(rows, key=lambda row: -row.time_ns))

    def __repr__(self) -> str:
        return self.table(row_limit=30)

    def table(self, row_limit: int | None = 100) -> str:
        """The rows as aligned text. A negative `row_limit`, or None, shows all of them."""
        shown = self._rows if row_limit is None or row_limit < 0 else self._rows[:row_limit]
        columns = [part.name for part in fields(self._kind) if part.name not in _COMMON]
        titles = [*(name.removesuffix("_ns") for name in columns), "device", "count", "time", "share", "bytes", "GB/s"]
        cells = [titles, *([_text(name, getattr(row, name)) for name in columns] + _common(row) for row in shown)]
        texts = [position for position, title in enumerate(titles) if title in _TEXTS]
        lines = [line.rstrip() for line in aligned(cells, texts)]
        left_out = len(self._rows) - len(shown)
        return "\n".join([*lines, *([f"showing {len(shown)} of {len(self._rows)} rows"] if left_out else [])]) + "\n"

    def to_dataframe(self) -> pd.DataFrame:
        """A pandas DataFrame with a column for each field, and `gb_per_s`. Needs pandas."""
        columns = [*(part.name for part in fields(self._kind)), "gb_per_s"]
        return data_frame([{**asdict(row), "gb_per_s": row.gb_per_s} for row in self._rows], columns=columns)


_COMMON = {part.name for part in fields(DeviceRow)}
#: Columns of text, which stand on the left.
_TEXTS = {"name", "kind", "op", "stream", "grid", "block", "device", "direction", "memories", "group", "dtype"}


def kernel_rows(trace: Trace) -> DeviceRows[KernelRow]:
    """All work on devices, one row for each kernel, op, stream and shape of the launch."""
    found = kernel_groups(trace)
    rows = []
    for number, (event, common) in enumerate(_shared(trace, found.groups)):
        shape = launch_shape(trace, event)
        row = KernelRow(
            **common,
            name=trace.names[trace.name[event]],
            kind=KINDS[trace.kind[event]],
            op=op_of_kernel(trace, event),
            stream=trace.tracks[trace.track[event]].title,
            grid=shape.grid,
            block=shape.block,
            min_ns=int(found.shortest_ns[number]),
            max_ns=int(found.longest_ns[number]),
            occupancy=float(found.occupancy[number]) if found.occupancy[number] >= 0 else None,
        )
        rows.append(row)
    return DeviceRows(KernelRow, rows)


def copy_rows(trace: Trace) -> DeviceRows[CopyRow]:
    """Copies by device and direction."""
    rows = []
    for event, common in _shared(trace, copy_groups(trace)):
        direction = direction_of(trace.names[trace.name[event]])
        rows.append(CopyRow(**common, direction=direction.way, memories=direction.memories))
    return DeviceRows(CopyRow, rows)


def collective_rows(trace: Trace) -> DeviceRows[CollectiveRow]:
    """Collectives by device, name, group of processes and element type."""
    rows = []
    for event, common in _shared(trace, collective_groups(trace)):
        of = collective_of_event(trace, event)
        row = CollectiveRow(**common, name=of.name, group=of.group, group_size=of.group_size, dtype=of.dtype)
        rows.append(row)
    return DeviceRows(CollectiveRow, rows)


def _shared(trace: Trace, groups: Groups) -> Iterator[tuple[int, dict[str, Any]]]:
    """The first event of each group, and the fields that all rows have."""
    devices = [str(device) for device in device_work(trace)]
    number, whole_ns = device_numbers(trace), int(trace.duration_ns[trace.is_device_work].sum()) or 1
    sums = (groups.first, groups.count, groups.device_ns, groups.moved_bytes)
    for event, count, time_ns, moved in zip(*(column.tolist() for column in sums), strict=True):
        yield (
            event,
            {
                "device": devices[number[event]],
                "count": count,
                "time_ns": time_ns,
                "share": time_ns / whole_ns,
                "moved_bytes": moved or None,
            },
        )


def _text(name: str, value: Any) -> str:
    if name.endswith("_ns"):
        return format_time(value / 1e3)
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    if isinstance(value, float):
        return f"{value:.0f}"
    text = "" if value is None else str(value)
    return text if len(text) <= _NAME_WIDTH else f"{text[: _NAME_WIDTH - 3]}..."


def _common(row: DeviceRow) -> list[str]:
    return [
        row.device,
        str(row.count),
        format_time(row.time_ns / 1e3),
        format_share(row.share, 1),
        "" if row.moved_bytes is None else format_memory(row.moved_bytes),
        "" if row.gb_per_s is None else f"{row.gb_per_s:.3f}",
    ]
