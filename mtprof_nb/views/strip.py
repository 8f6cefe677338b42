"""The strip above the tabs: the key figures of a trace as text, and its time by phase."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from mtprof_nb.analysis import units
from mtprof_nb.analysis.devices.device_figures import device_figures
from mtprof_nb.analysis.devices.who_waits import who_waits
from mtprof_nb.analysis.functions.sampled_lines import outside_by_line
from mtprof_nb.analysis.memory.missing_memory import has_memory, lacks_memory
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.analysis.summary import summary
from mtprof_nb.model.trace import Trace
from mtprof_nb.views.device_bars import MOST_BARS, DeviceBar, device_bars

#: Wall time in which no op ran.
OUTSIDE = "outside ops"
#: Wall time that the profiler took: its start and its line marks. Its end is not part of the wall time.
PROFILER = "profiler, outside ops"
_PROFILER_MEANS = "its start and line marks, as measured, and an estimate for each event; not its end, after the wall"
_WALL = "from the start of the recording to its end"
_WALL_OF_PARTS = "the recorded parts together, without the time between them"
#: A note is shown if the time outside ops has at least this share and this length.
_NOTED_SHARE, _NOTED_NS = 1 / 3, 10_000_000
#: Why there is no memory if all ops ran on other threads.
NO_MEMORY = "Memory of other threads is not recorded, and the thread that profiles allocated none."
_NOTHING = "Nothing was recorded: no op ran, or no tensor runtime was imported."
_PYTHON_ALONE = "No op ran: lines and stacks tell where the time of Python code went."
_NOTHING_LEFT = "Nothing was recorded: another profiler emptied the recording, or the activities that ran were off."
_MEMORY_IN_PART = (
    "Memory of other threads is not recorded: the peak is without it, and operators that ran there count as 0 B."
)


class Figure(NamedTuple):
    """One number of the strip: its title, text and meaning."""

    title: str
    text: str
    meaning: str


class Share(NamedTuple):
    """One phase, or the time outside ops: its time, and its share as text."""

    phase: str
    ns: int
    text: str


@dataclass(frozen=True)
class Strip:
    """Content of the strip above the tabs."""

    title: str
    figures: tuple[Figure, ...]
    phases: tuple[Share, ...]
    #: The name of the whole that the shares are of.
    whole: str
    #: Which side waits for which, the host or its devices; "" without devices, or if it is not clear.
    sentence: str
    #: The time of each device.
    devices: tuple[DeviceBar, ...]
    #: Failures and missing data, one line each.
    notes: tuple[str, ...]

    @property
    def line(self) -> str:
        """The figures in one line of text."""
        return ", ".join(f"{figure.title} {figure.text}" for figure in self.figures)

    def written(self) -> dict[str, Any]:
        """The strip as the page reads it."""
        return {
            "title": self.title,
            "figures": [figure._asdict() for figure in self.figures],
            "phases": [share._asdict() for share in self.phases],
            "whole": self.whole,
            "sentence": self.sentence,
            "devices": [bar.written() for bar in self.devices],
            "notes": list(self.notes),
        }


def strip_of(trace: Trace, name: str | None = None, status: str | None = None) -> Strip:
    """The strip of `trace`; `status` says how the recorded program failed, if it did."""
    title = name or trace.label or "profile"
    whole = "Time in ops" if summary(trace).outside_ns is None else "Wall time"
    waits = who_waits(trace)
    sentence = f"{waits[0].upper()}{waits[1:]}." if waits else ""
    notes = _notes(trace, status)
    return Strip(title, _figures(trace), phase_shares(trace), whole, sentence, device_bars(trace), notes)


@once_a_trace
def _figures(trace: Trace) -> tuple[Figure, ...]:
    of = summary(trace)
    figures = [
        Figure("wall", units.duration(of.wall_ns), _WALL_OF_PARTS if len(trace.windows) > 1 else _WALL),
        Figure("in ops", units.duration(of.in_ops_ns), "time in ops, all threads together"),
        Figure("ops", units.number(of.ops), "calls of ops, nested ones too, as in the table of operators"),
    ]
    if of.steps is not None:
        figures.append(Figure("steps", units.number(of.steps), "profiler steps with ops"))
    figures.append(Figure("threads", units.number(of.threads), "threads with ops or scopes"))
    if of.device_ns is not None:
        figures.append(
            Figure("on device", units.duration(of.device_ns), "time of kernels, copies, sets and collectives")
        )
    if of.peak_bytes is not None:
        figures.append(Figure("peak memory", units.nbytes(of.peak_bytes), "most bytes held at once, of one device"))
    if of.overhead_ns is not None:
        figures.append(Figure("profiler", f"≈ {units.duration(of.overhead_ns)}", _PROFILER_MEANS))
    if trace.hooks:
        # Scopes are recorded without a runtime until the program imports one.
        hooks = [hook for hook in trace.hooks if hook != "scopes"] or trace.hooks
        figures.append(Figure("hook", ", ".join(hooks), "how ops were recorded"))
    return tuple(figures)


@once_a_trace
def phase_shares(trace: Trace) -> tuple[Share, ...]:
    """The self time of ops by phase, in the order of a step, then the time outside ops; without empty ones."""
    of = summary(trace)
    parts = [*of.phases_ns.items(), (OUTSIDE, of.outside_ns or 0)]
    if of.outside_ns is not None:
        parts.append((PROFILER, of.profiler_ns))
    whole = sum(ns for _, ns in parts)
    return tuple(Share(phase, ns, units.share(ns, whole)) for phase, ns in parts if ns and any(of.phases_ns.values()))


def why_empty(trace: Trace) -> str:
    """Why a trace without events has none."""
    if trace.samples is not None and len(trace.samples):
        return _PYTHON_ALONE
    return _NOTHING_LEFT if trace.is_partial else _NOTHING


def _notes(trace: Trace, status: str | None) -> tuple[str, ...]:
    notes = [status] if status else []
    if not len(trace):
        notes.append(why_empty(trace))
    of = summary(trace)
    outside_ns, whole_ns = of.outside_ns or 0, of.wall_ns
    cost_ns, by_line = min(trace.between_ops_ns, outside_ns), bool(outside_by_line(trace))
    # Where lines have this time, the overview tells it.
    if len(trace) and (cost_ns or not by_line) and outside_ns >= max(whole_ns * _NOTED_SHARE, _NOTED_NS):
        where = "the lines tell where" if by_line else "the times of ops and lines are without it"
        recording = f"recording itself (≈ {units.duration(cost_ns)}), " if cost_ns else ""
        notes.append(
            f"{units.duration(outside_ns)} of {units.duration(whole_ns)} passed outside ops, in {recording}"
            f"Python code, waiting or input: {where}."
        )
    if (more := len(device_figures(trace)) - MOST_BARS) > 0:
        notes.append(f"{units.plural(more, 'more device')}: devices() has the figures of all.")
    if lacks_memory(trace).any():
        notes.append(_MEMORY_IN_PART if has_memory(trace) else NO_MEMORY)
    if trace.dropped and "max_events" not in (status or ""):
        exactly = "" if trace.dropped_exactly else "At least "
        dropped = units.plural(trace.dropped, "event")
        notes.append(f"{exactly}{dropped} dropped: the recording was full. Raise max_events to keep them.")
    return (*notes, *trace.notes)
