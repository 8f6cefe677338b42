"""The time of each device as a bar: computing, communication, copies, and idle time by cause. Each has a colour."""

from __future__ import annotations

from typing import Any, NamedTuple

from mtprof_nb.analysis import units
from mtprof_nb.analysis.devices.device_figures import DeviceFigures, device_figures
from mtprof_nb.model.trace import Trace


class TimeKind(NamedTuple):
    """A kind of time of a device: its title, colour and meaning, and the figure that it is."""

    title: str
    colour: str
    meaning: str
    figure: str


#: Any two differ for normal, protan, deutan and tritan vision; a test checks it.
BUSY_KINDS = (
    TimeKind("computing", "#1f8a70", "a kernel ran, or a memory set", "computing_ns"),
    TimeKind("exposed communication", "#2b5fa8", "a collective ran, and nothing computed", "exposed_communication_ns"),
    TimeKind("exposed copies", "#6b3f1d", "a copy ran, and nothing else", "exposed_copies_ns"),
)
#: In the order of `analysis.devices.idle_gaps.CAUSES`.
IDLE_KINDS = (
    TimeKind("idle: host late", "#e4572e", "the host launched the next kernel too late", "idle_host_ns"),
    TimeKind("idle: kernel to kernel", "#8f99a3", "from one queued kernel to the next", "idle_kernel_ns"),
    TimeKind(
        "idle: synchronisation",
        "#f3c846",
        "after the host waited for the device, or while a stream waited",
        "idle_synchronisation_ns",
    ),
    TimeKind("idle: other", "#d9dde1", "for another reason, or for none that is known", "idle_other_ns"),
)
#: The most devices that have a bar.
MOST_BARS = 8


class DevicePart(NamedTuple):
    """One kind of time of a device: its share as text."""

    title: str
    colour: str
    meaning: str
    ns: int
    text: str


class DeviceBar(NamedTuple):
    """The time of a device from its first kernel to its last; without kinds of time that it did not spend."""

    title: str
    parts: tuple[DevicePart, ...]

    @property
    def line(self) -> str:
        """The bar in one line of text."""
        return f"{self.title}: " + ", ".join(f"{part.title} {part.text}" for part in self.parts)

    def written(self) -> dict[str, Any]:
        """The bar as the page reads it."""
        return {"title": self.title, "parts": [part._asdict() for part in self.parts]}


def device_bars(trace: Trace) -> tuple[DeviceBar, ...]:
    """A bar for each of the first devices."""
    return tuple(_bar(row) for row in device_figures(trace)[:MOST_BARS])


def _bar(row: DeviceFigures) -> DeviceBar:
    spent = ((kind, int(getattr(row, kind.figure))) for kind in (*BUSY_KINDS, *IDLE_KINDS))
    parts = (
        DevicePart(kind.title, kind.colour, kind.meaning, ns, units.share(ns, row.span_ns)) for kind, ns in spent if ns
    )
    return DeviceBar(str(row.device), tuple(parts))
