"""A sentence on where the time of a recording went, and what the program waited for."""

from __future__ import annotations

from typing import NamedTuple

from mtprof_nb.analysis.causes.data_loading import loader_calls
from mtprof_nb.analysis.causes.recorded_time import line_times
from mtprof_nb.analysis.devices.device_figures import device_figures
from mtprof_nb.analysis.summary import summary
from mtprof_nb.model.source_files import file_label
from mtprof_nb.model.trace import SourceLine, Trace

_PARTS = {
    "forward": "is the forward pass",
    "backward": "is the backward pass",
    "optimizer": "is the optimizer",
    "other": "is in ops of no pass",
    "outside": "passed outside ops",
}
#: A line is named in the sentence from this share of the whole on.
_NAMED_LINE = 0.2


class Waiting(NamedTuple):
    """Something that the program waited for, and how long."""

    title: str
    ns: int


def whole_ns(trace: Trace) -> int:
    """The time that shares are of: in ops, all threads together, and where it is known outside ops."""
    of = summary(trace)
    return of.in_ops_ns + (of.outside_ns + of.profiler_ns if of.outside_ns is not None else 0)


def where_time_went(trace: Trace) -> str:
    """As "73 % of this cell is the backward pass; Cell [3]:4 causes 58 % of the whole"; "" without ops."""
    of, whole = summary(trace), whole_ns(trace)
    if not whole or not of.ops:
        return ""
    parts = {**of.phases_ns, "outside": of.outside_ns or 0}
    part = max(parts, key=lambda name: parts[name])
    what = "cell" if trace.cells else "recording"
    within = f"this {what}" if of.outside_ns is not None else f"the time in ops of this {what}"
    line, ns = max(line_times(trace).items(), key=lambda pair: pair[1], default=(None, 0))
    cause = f"; {_named(trace, line)} causes {ns / whole * 100:.0f} % of the whole" if ns >= _NAMED_LINE * whole else ""
    return f"{parts[part] / whole * 100:.0f} % of {within} {_PARTS[part]}{cause}."


def _named(trace: Trace, line: SourceLine | None) -> str:
    return f"{file_label(trace, line.file)}:{line.line}" if line else "one line"


def waiting(trace: Trace) -> list[Waiting]:
    """Waits of the program, the longest first: its DataLoader, its devices, and other time outside ops.

    Time in the DataLoader's next is outside ops only in part, so that the times overlap.
    """
    calls = loader_calls(trace)
    device_ns = max((one.host_waiting_ns for one in device_figures(trace)), default=0)
    found = [
        Waiting("outside ops", summary(trace).outside_ns or 0),
        Waiting("DataLoader's next", int(trace.duration_ns[calls].sum())),
        Waiting("synchronisation with the device", device_ns),
        Waiting("profiler, outside ops", summary(trace).profiler_ns),
    ]
    return sorted((one for one in found if one.ns), key=lambda one: -one.ns)
