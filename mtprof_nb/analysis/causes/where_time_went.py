"""A sentence on where the time of a recording went, and what the program waited for."""

from __future__ import annotations

from typing import NamedTuple

from mtprof_nb.analysis.causes.data_loading import loader_calls
from mtprof_nb.analysis.causes.recorded_time import line_times
from mtprof_nb.analysis.devices.device_figures import device_figures
from mtprof_nb.analysis.ranks.rank_figures import rank_figures
from mtprof_nb.analysis.ranks.stragglers import straggler
from mtprof_nb.analysis.summary import summary
from mtprof_nb.model.source_files import file_label
from mtprof_nb.model.trace import SourceLine, Trace

_PARTS = {
    "forward": "is the forward pass",
    "backward": "is the backward pass",
    "optimizer": "is the optimizer",
    "other": "is in ops of no pass",
    "ops": "is spent in ops",
    "outside": "passed outside ops",
}
#: A line is named in the sentence from this share of the whole on.
_NAMED_LINE = 0.2


class Waiting(NamedTuple):
    """Something that the program waited for, and how long."""

    title: str
    ns: int


def whole_ns(trace: Trace) -> int:
    """The time that shares are of: in ops and, where it is known, outside ops, of all threads and processes."""
    of = summary(trace)
    outside_ns = _outside_ns(trace)
    return of.in_ops_ns + (outside_ns + of.profiler_ns if outside_ns is not None else 0)


def _outside_ns(trace: Trace) -> int | None:
    """The time outside ops; of several processes the sum of theirs, waiting and communicating included.

    Processes with devices compute there, whatever their hosts do meanwhile: nothing is known of these together.
    """
    if len(trace.processes) < 2 or not trace.process_facts or trace.is_device_work.any():
        return summary(trace).outside_ns
    return sum(row.outside_ns + row.waiting_ns + row.communicating_ns for row in rank_figures(trace))


def where_time_went(trace: Trace) -> str:
    """As "73 % of this cell is the backward pass; Cell [3]:4 causes 58 % of the whole"; "" without ops.

    Of several ranks, the one that the others waited for comes first, with the evidence.
    """
    named = straggler(trace)
    return " ".join(filter(None, (f"{str(named)[0].upper()}{str(named)[1:]}." if named else "", _parts(trace))))


def _parts(trace: Trace) -> str:
    of, whole, outside_ns = summary(trace), whole_ns(trace), _outside_ns(trace)
    if not whole or not of.ops:
        return ""
    what = "cell" if trace.cells else "recording"
    within = f"this {what}" if outside_ns is not None else f"the time in ops of this {what}"
    line, ns = max(line_times(trace).items(), key=lambda pair: pair[1], default=(None, 0))
    is_named = whole >= ns >= _NAMED_LINE * whole
    cause = f"{_named(trace, line)} causes {ns / whole * 100:.0f} % of" if is_named else ""
    parts = {**_passes(of.phases_ns), "outside": outside_ns or 0}
    if outside_ns is None and "ops" in parts:
        return f"{cause} {within}." if cause else ""
    part = max(parts, key=lambda name: parts[name])
    return f"{parts[part] / whole * 100:.0f} % of {within} {_PARTS[part]}{f'; {cause} the whole' if cause else ''}."


def _passes(phases_ns: dict[str, int]) -> dict[str, int]:
    """The time of each phase; of a program that trains nothing, which has no passes, the time of all ops."""
    if phases_ns["backward"] or phases_ns["optimizer"]:
        return phases_ns
    return {"ops": sum(phases_ns.values())}


def _named(trace: Trace, line: SourceLine | None) -> str:
    return f"{file_label(trace, line.file)}:{line.line}" if line else "one line"


def waiting(trace: Trace) -> list[Waiting]:
    """Waits of the program, the longest first: its DataLoader, its devices, and other time outside ops.

    Time in the DataLoader's next is outside ops only in part, so that the times overlap.
    """
    calls = loader_calls(trace)
    device_ns = max((one.host_waiting_ns for one in device_figures(trace)), default=0)
    found = [
        Waiting("outside ops", _outside_ns(trace) or 0),
        Waiting("DataLoader's next", int(trace.duration_ns[calls].sum())),
        Waiting("synchronisation with the device", device_ns),
        Waiting("profiler, outside ops", summary(trace).profiler_ns),
    ]
    return sorted((one for one in found if one.ns), key=lambda one: -one.ns)
