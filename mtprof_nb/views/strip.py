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
from mtprof_nb.analysis.program_time.recorded_time import program_ns, whose_time
from mtprof_nb.analysis.summary import coverage_notes, covered_part, summary
from mtprof_nb.errors import LONGEST_SENTENCE, shown
from mtprof_nb.model.trace import Trace
from mtprof_nb.views.device_bars import MOST_BARS, DeviceBar, device_bars

#: Time in which no op ran.
OUTSIDE = "outside ops"
_WHOSE = {"program": "the program's", "threads": "all threads'", "ops": "the ops'"}
_PROFILER_MEANS = "its start and line marks, as measured, and an estimate for each event; not its end, after the wall"
_WALL = "from the start of the recording to its end"
_WALL_OF_COVERED = "until the recording was full, of all the time that the program ran; figures are of the first part"
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
    #: The whole that the shares are of, as `of the program's 3.20 s`.
    whole: str
    #: Which side waits for which, the host or its devices; "" without devices, or if it is not clear.
    sentence: str
    #: The time of each device.
    devices: tuple[DeviceBar, ...]
    #: Failures and missing data, one line each.
    notes: tuple[str, ...]
    #: Wall time that the profiler took in addition to the whole: its start and its line marks, not its end.
    profiler: str = ""

    @property
    def line(self) -> str:
        """The figures in one line of text."""
        return ", ".join(f"{figure.title} {figure.text}" for figure in self.figures)

    @property
    def shares(self) -> str:
        """The shares in one line of text, their whole, and the profiler's time."""
        shares = ", ".join(f"{share.phase} {share.text}" for share in self.phases)
        return f"{self.whole}: {shares}" + (f"; {self.profiler}" if self.profiler else "")

    def written(self) -> dict[str, Any]:
        """The strip as the page reads it."""
        return {
            "title": self.title,
            "figures": [figure._asdict() for figure in self.figures],
            "phases": [share._asdict() for share in self.phases],
            "whole": self.whole,
            "profiler": self.profiler,
            "sentence": self.sentence,
            "devices": [bar.written() for bar in self.devices],
            "notes": list(self.notes),
        }


def strip_of(trace: Trace, name: str | None = None, status: str | None = None) -> Strip:
    """The strip of `trace`; `status` is how the recorded program failed, if it did."""
    title = shown(name or trace.label or "profile")
    whole = f"Of {_WHOSE[whose_time(trace)]} {units.duration(program_ns(trace))}"
    own_ns = summary(trace).profiler_ns
    profiler = f"beside it, the profiler's start and line marks: {units.duration(own_ns)}" if own_ns else ""
    sentence = shown(units.sentence(who_waits(trace)))
    notes = tuple(shown(note, LONGEST_SENTENCE) for note in _notes(trace, status))
    shares, devices = phase_shares(trace), device_bars(trace)
    return Strip(title, _figures(trace), shares, whole, sentence, devices, notes, profiler)


@once_a_trace
def _figures(trace: Trace) -> tuple[Figure, ...]:
    of = summary(trace)
    figures = [
        Figure(
            "wall", covered_part(trace).removeprefix("the first ") or units.duration(of.wall_ns), _wall_meaning(trace)
        ),
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


def _wall_meaning(trace: Trace) -> str:
    if trace.unrecorded:
        return _WALL_OF_COVERED
    return _WALL_OF_PARTS if len(trace.windows) > 1 else _WALL


@once_a_trace
def phase_shares(trace: Trace) -> tuple[Share, ...]:
    """The self time of ops by phase, in the order of a step, then the time outside ops; without empty ones."""
    of, whole = summary(trace), program_ns(trace)
    parts = [*of.phases_ns.items(), (OUTSIDE, whole - of.in_ops_ns)]
    return tuple(Share(phase, ns, units.share(ns, whole)) for phase, ns in parts if ns and any(of.phases_ns.values()))


def why_empty(trace: Trace) -> str:
    """Why a trace without events has none."""
    if trace.samples is not None and len(trace.samples):
        return _PYTHON_ALONE
    return _NOTHING_LEFT if trace.is_partial else _NOTHING


def _notes(trace: Trace, status: str | None) -> tuple[str, ...]:
    notes = [status] if status else []
    notes += [note for note in coverage_notes(trace) if note.partition(": ")[2].rstrip(".") not in (status or "")]
    if not len(trace):
        notes.append(why_empty(trace))
    of = summary(trace)
    outside_ns, whole_ns = of.outside_ns or 0, program_ns(trace)
    cost_ns, by_line = min(trace.between_ops_ns, outside_ns), bool(outside_by_line(trace))
    # Where lines have this time, the overview shows it.
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
    if trace.dropped and not trace.unrecorded and "max_events" not in (status or ""):
        exactly = "" if trace.dropped_exactly else "At least "
        dropped = units.plural(trace.dropped, "event")
        notes.append(f"{exactly}{dropped} dropped: the recording was full. Raise max_events to keep them.")
    return (*notes, *trace.notes)
