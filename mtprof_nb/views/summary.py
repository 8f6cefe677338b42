"""The strip on top: the key figures of a trace, and how its time divides into phases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mtprof_nb.analysis.costs import averaged_costs
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.trace import KERNEL, OP, PHASES, SCOPE, Trace
from mtprof_nb.views import units


class Figure(NamedTuple):
    """One number of the strip, written out, and what it means."""

    title: str
    text: str
    meaning: str


class Share(NamedTuple):
    """One phase: the self time of its ops, and how much of all that is."""

    phase: str
    ns: int
    text: str


@dataclass(frozen=True)
class Summary:
    """What the strip shows."""

    title: str
    figures: tuple[Figure, ...]
    phases: tuple[Share, ...]
    #: What went wrong or is missing, one line each.
    notes: tuple[str, ...]

    @property
    def line(self) -> str:
        """The figures in one line of text."""
        return ", ".join(f"{figure.title} {figure.text}" for figure in self.figures)


def summary(trace: Trace, name: str | None = None, status: str | None = None) -> Summary:
    """The strip of `trace`; `status` says how the recorded program ended, where it did not end well."""
    title = name or trace.label or "profile"
    return Summary(title, _figures(trace), phase_shares(trace), _notes(trace, status))


@once_a_trace
def _figures(trace: Trace) -> tuple[Figure, ...]:
    costs = averaged_costs(trace)
    is_op = (trace.kind == OP) & costs.counted
    # Stacks hold Python frames of threads that ran no op, and of the moments after the last step.
    runs = (trace.kind == OP) | (trace.kind == SCOPE)
    found = [
        Figure("wall", units.duration(wall_ns(trace)), "from the start of the recording to its end"),
        Figure("in ops", units.duration(int(costs.self_ns[is_op].sum())), "time in ops, all threads together"),
        Figure("ops", units.number(int(is_op.sum())), "calls of ops, nested ones too"),
        Figure("steps", units.number(len(np.unique(trace.step[runs]))), "profiler steps with ops or scopes"),
        Figure("threads", units.number(len(np.unique(trace.thread[runs]))), "threads with ops or scopes"),
    ]
    if np.any(trace.kind == KERNEL):
        kernels_ns = int(trace.duration_ns[trace.kind == KERNEL].sum())
        found.append(Figure("on device", units.duration(kernels_ns), "time of all kernels"))
    if (peak := peak_bytes(trace)) is not None:
        found.append(Figure("peak memory", units.nbytes(peak), "most bytes held at once, of one device"))
    if trace.overhead_ns >= 0:
        found.append(Figure("profiler", f"≈ {units.duration(trace.overhead_ns)}", "time that recording itself added"))
    return tuple(found)


def wall_ns(trace: Trace) -> int:
    """The recording's own window, or what its events span where that is not known."""
    if trace.ended_ns > trace.began_ns:
        return trace.ended_ns - trace.began_ns
    return int(trace.end_ns.max() - trace.start_ns.min()) if len(trace) else 0


def peak_bytes(trace: Trace) -> int | None:
    """The most bytes that any one device's allocator held; None where memory was not recorded."""
    if trace.allocations is not None:
        return int(trace.allocations.total.max(initial=0))
    return None if trace.memory_after is None else int(trace.memory_after.max(initial=0))


@once_a_trace
def phase_shares(trace: Trace) -> tuple[Share, ...]:
    """The self time of ops by phase, in the order in which a step runs; phases without time are left out."""
    costs = averaged_costs(trace)
    is_op = (trace.kind == OP) & costs.counted
    time = np.zeros(len(PHASES), np.int64)
    np.add.at(time, trace.phase[is_op], costs.self_ns[is_op])
    whole = int(time.sum())
    return tuple(
        Share(phase, ns, units.share(ns, whole)) for phase, ns in zip(PHASES, time.tolist(), strict=True) if ns
    )


def _notes(trace: Trace, status: str | None) -> tuple[str, ...]:
    notes = [status] if status else []
    if not len(trace):
        notes.append("Nothing was recorded: no op ran, or no tensor runtime was imported.")
    if trace.dropped:
        exactly = "" if trace.dropped_exactly else "At least "
        dropped = units.plural(trace.dropped, "event")
        notes.append(f"{exactly}{dropped} dropped: the recording was full. Raise max_events to keep them.")
    return tuple(notes)
