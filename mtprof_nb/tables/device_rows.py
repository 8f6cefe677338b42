"""Rows of kernels, copies and collectives on devices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from mtprof_nb.analysis.devices.kernel_groups import (
    collective_groups,
    collective_of_event,
    copy_groups,
    direction_of,
    kernel_groups,
    launch_shape,
    op_of_kernel,
)
from mtprof_nb.analysis.devices.recorded_devices import device_numbers, device_work
from mtprof_nb.analysis.groups import Groups
from mtprof_nb.model.trace import KINDS, Trace
from mtprof_nb.tables.row_table import RowTable
from mtprof_nb.tables.table import Table, TableColumn, table_of

R = TypeVar("R", bound="DeviceRow")


@dataclass(frozen=True, kw_only=True)
class DeviceRow:
    """Events of one kind on one device: their number, their time, and the bytes that they moved."""

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


_COMMON = [part.name for part in fields(DeviceRow)]
#: Units of columns; all others are words. A column has the name of its field as title, but for these.
_UNITS = (
    dict.fromkeys(("name", "op"), "code")
    | dict.fromkeys(("count", "group_size"), "count")
    | dict.fromkeys(("min_ns", "max_ns", "time_ns"), "time")
    | {"share": "share", "occupancy": "percent", "moved_bytes": "bytes", "gb_per_s": "number"}
)
_TITLES = {"min_ns": "min", "max_ns": "max", "time_ns": "time", "moved_bytes": "bytes", "gb_per_s": "GB/s"}


class DeviceRows(RowTable[R]):
    """Rows of one kind, those with the most time first."""

    def __init__(self, kind: type[R], rows: list[R]) -> None:
        super().__init__(sorted(rows, key=lambda row: -row.time_ns))
        self._facts = (*(part.name for part in fields(kind)), "gb_per_s")

    def content(self) -> Table:
        """All rows, as they are shown."""
        names = [*(name for name in self._facts[:-1] if name not in _COMMON), *_COMMON, "gb_per_s"]
        columns = [TableColumn(name, _TITLES.get(name, name), _UNITS.get(name, "words")) for name in names]
        return table_of(columns, self._rows, _made)


def _made(row: DeviceRow) -> dict[str, Any]:
    made: dict[str, Any] = {"share": (row.share, 1)}
    if isinstance(row, KernelRow):
        made |= {name: "x".join(map(str, getattr(row, name))) for name in ("grid", "block")}
        made["occupancy"] = None if row.occupancy is None else round(row.occupancy)
    if isinstance(row, CollectiveRow):
        made["group_size"] = None if row.group_size < 0 else row.group_size
    return made


def kernel_rows(trace: Trace) -> DeviceRows[KernelRow]:
    """All work on devices, one row for each kernel, op, stream and shape of the launch."""
    kernels = kernel_groups(trace)
    rows = []
    for number, (event, common) in enumerate(_shared(trace, kernels.groups)):
        shape = launch_shape(trace, event)
        row = KernelRow(
            **common,
            name=trace.names[trace.name[event]],
            kind=KINDS[trace.kind[event]],
            op=op_of_kernel(trace, event),
            stream=trace.tracks[trace.track[event]].title,
            grid=shape.grid,
            block=shape.block,
            min_ns=int(kernels.shortest_ns[number]),
            max_ns=int(kernels.longest_ns[number]),
            occupancy=float(kernels.occupancy[number]) if kernels.occupancy[number] >= 0 else None,
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
