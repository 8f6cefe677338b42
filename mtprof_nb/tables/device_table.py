"""`Devices`: the figures of each device, as rows, as text and as a DataFrame."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING

from mtprof_nb.analysis.devices.device_figures import DeviceFigures, device_figures
from mtprof_nb.analysis.devices.who_waits import who_waits
from mtprof_nb.errors import legible
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
from mtprof_nb.tables.row_list import RowList
from mtprof_nb.tables.text_table import aligned, data_frame, format_memory, format_share, format_time

if TYPE_CHECKING:
    import pandas as pd

_NOTHING = "no device was recorded: no kernel ran, or the runtime reports none"


class Devices(RowList[DeviceFigures]):
    """The devices of a trace that ran kernels, copies, sets or collectives; empty without one."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(device_figures(trace))
        self._trace = trace

    def __repr__(self) -> str:
        return self.table()

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

    def to_dataframe(self) -> pd.DataFrame:
        """A pandas DataFrame with one row a device and a column for each field of `DeviceFigures`. Needs pandas."""
        rows = [asdict(row) | {"device": str(row.device)} for row in self._rows]
        return data_frame(rows, columns=[part.name for part in fields(DeviceFigures)])

    def table(self) -> str:
        """The figures as text, one column a device."""
        if not self._rows:
            return f"{_NOTHING}\n"
        columns = [_figures(row) for row in self._rows]
        cells = [[title, *(column[title] for column in columns)] for title in columns[0]]
        lines = [line.rstrip() for line in aligned(cells, texts=(0,))]
        return "\n".join([*filter(None, [legible(self.sentence)]), *lines]) + "\n"


def _figures(row: DeviceFigures) -> dict[str, str]:
    """The figures of one device as texts, by their titles."""

    def time(ns: int | None) -> str:
        return "" if ns is None else format_time(ns / 1e3)

    def part(ns: int) -> str:
        return f"{time(ns)} {format_share(ns, row.span_ns):>7}"

    def moved(count: int, nbytes: int | None) -> str:
        return str(count) if nbytes is None else f"{count}, {format_memory(nbytes)}"

    return {
        "": str(row.device),
        "span": part(row.span_ns),
        "busy": part(row.busy_ns),
        "  computing": part(row.computing_ns),
        "  exposed communication": part(row.exposed_communication_ns),
        "  exposed copies": part(row.exposed_copies_ns),
        "idle": part(row.idle_ns),
        "  host late": part(row.idle_host_ns),
        "  kernel to kernel": part(row.idle_kernel_ns),
        "  synchronisation": part(row.idle_synchronisation_ns),
        "  other": part(row.idle_other_ns),
        "communication": part(row.communication_ns),
        "  behind computing": "" if row.overlap is None else format_share(row.overlap, 1),
        "copies": part(row.copies_ns),
        "launch delay, median": time(row.launch_delay_median_ns),
        "launch delay, mean": time(row.launch_delay_mean_ns),
        "launch delay, max": time(row.launch_delay_max_ns),
        "queue, max": str(row.queue_max),
        "queue, mean": f"{row.queue_mean:.1f}",
        "# of streams": str(row.streams),
        "# of kernels": str(row.kernels),
        "  under 10 us": f"{row.short_kernels} {format_share(row.short_kernels, row.kernels):>7}",
        "# of copies": moved(row.copies, row.copied_bytes),
        "# of collectives": moved(row.collectives, row.collective_bytes),
        "host waits": time(row.host_waiting_ns),
    }
