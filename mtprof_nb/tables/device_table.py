"""`Devices`: the figures of each device."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from mtprof_nb.analysis.devices.device_figures import DeviceFigures, device_figures
from mtprof_nb.analysis.devices.who_waits import who_waits
from mtprof_nb.model.trace import Trace
from mtprof_nb.tables.device_rows import (
    CollectiveRow,
    CopyRow,
    DeviceRows,
    KernelRow,
    collective_rows,
    copy_rows,
    kernel_rows,
)
from mtprof_nb.tables.row_table import RowTable
from mtprof_nb.tables.table import Table, TableColumn, table_of

#: Figures of a device, each with its key, title and unit. Parts have their shares of the span.
_COLUMNS = (
    TableColumn("device", "", "words"),
    TableColumn("span_ns", "span", "part"),
    TableColumn("busy_ns", "busy", "part"),
    TableColumn("computing_ns", "  computing", "part"),
    TableColumn("exposed_communication_ns", "  exposed communication", "part"),
    TableColumn("exposed_copies_ns", "  exposed copies", "part"),
    TableColumn("idle_ns", "idle", "part"),
    TableColumn("idle_host_ns", "  host late", "part"),
    TableColumn("idle_kernel_ns", "  kernel to kernel", "part"),
    TableColumn("idle_synchronisation_ns", "  synchronisation", "part"),
    TableColumn("idle_other_ns", "  other", "part"),
    TableColumn("communication_ns", "communication", "part"),
    TableColumn("overlap", "  behind computing", "share"),
    TableColumn("copies_ns", "copies", "part"),
    TableColumn("launch_delay_median_ns", "launch delay, median", "time"),
    TableColumn("launch_delay_mean_ns", "launch delay, mean", "time"),
    TableColumn("launch_delay_max_ns", "launch delay, max", "time"),
    TableColumn("queue_max", "queue, max", "count"),
    TableColumn("queue_mean", "queue, mean", "number"),
    TableColumn("streams", "# of streams", "count"),
    TableColumn("kernels", "# of kernels", "count"),
    TableColumn("short_kernels", "  under 10 µs", "count"),
    TableColumn("copies", "# of copies", "count"),
    TableColumn("copied_bytes", "  copied", "bytes"),
    TableColumn("collectives", "# of collectives", "count"),
    TableColumn("collective_bytes", "  exchanged", "bytes"),
    TableColumn("host_waiting_ns", "host waits", "time"),
)


class Devices(RowTable[DeviceFigures]):
    """The devices of a trace that ran kernels, copies, sets or collectives; empty without one."""

    _nothing = "no device was recorded: no kernel ran, or the runtime reports none"
    _facts = tuple(part.name for part in fields(DeviceFigures))

    def __init__(self, trace: Trace) -> None:
        super().__init__(device_figures(trace))
        self._trace = trace

    @property
    def sentence(self) -> str:
        """Which side waits for which: `the GPU is idle 92 % of the time, waiting for the host`; "" if not clear."""
        return who_waits(self._trace)

    def kernels(self) -> DeviceRows[KernelRow]:
        """Kernels, copies, sets and collectives: a row for each name, op, stream, grid and block."""
        return kernel_rows(self._trace)

    def copies(self) -> DeviceRows[CopyRow]:
        """Copies: a row for each device and direction, with bytes and bandwidth."""
        return copy_rows(self._trace)

    def collectives(self) -> DeviceRows[CollectiveRow]:
        """Collectives: a row for each device, name, group of processes and element type."""
        return collective_rows(self._trace)

    def facts(self) -> Table:
        """The data: a row for each device, a column for each field of `DeviceFigures`."""
        data = super().facts()
        return replace(data, rows=[[str(device), *figures] for device, *figures in data.rows])

    def content(self) -> Table:
        """A row for each figure, and a column for each device."""
        return table_of(_COLUMNS, self._rows, _made, sentence=self.sentence).turned()


def _made(row: DeviceFigures) -> dict[str, Any]:
    parts = [column.key for column in _COLUMNS if column.unit == "part"]
    return {
        "device": str(row.device),
        **{key: (getattr(row, key), row.span_ns) for key in parts},
        "overlap": None if row.overlap is None else (row.overlap, 1),
        "short_kernels": (row.short_kernels, row.kernels),
    }
