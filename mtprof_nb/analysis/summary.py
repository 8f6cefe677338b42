"""The strip on top: the key figures of a trace, and how its time divides into phases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mtprof_nb.analysis.costs import STEP_PREFIX, averaged_name, counted_ops, in_ops_ns, op_costs
from mtprof_nb.analysis.memory.memory_curve import memory_curve, memory_devices, peak
from mtprof_nb.analysis.memory.missing_memory import has_memory, lacks_memory
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.trace import OP, PHASES, SCOPE, Trace
from mtprof_nb.views.tables import units

#: What of the wall time is in no op.
OUTSIDE = "outside ops"
#: The profiler's own part of the wall time: its start and its line marks. Its end comes after the wall time.
PROFILER = "profiler, outside ops"
_WALL = "from the start of the recording to its end"
_WALL_OF_PARTS = "the recorded parts together, without the time between them"
#: A note says so where that is a large share, and more than the start of a recording takes.
_NOTED_SHARE, _NOTED_NS = 1 / 3, 10_000_000
#: Why there is no memory, where ops ran on other threads than the one that profiles.
NO_MEMORY = "Memory of other threads is not recorded, and the thread that profiles allocated none."
_NOTHING = "Nothing was recorded: no op ran, or no tensor runtime was imported."
_NOTHING_LEFT = "Nothing was recorded: another profiler emptied the recording, or the activities that ran were off."
_MEMORY_IN_PART = (
    "Memory of other threads is not recorded: the peak is without it, and operators that ran there count as 0 B."
)


class Figure(NamedTuple):
    """One number of the strip, written out, and what it means."""

    title: str
    text: str
    meaning: str


class Share(NamedTuple):
    """One phase: the self time of its ops, or what of the recording ran outside ops; and how much of all that is."""

    phase: str
    ns: int
    text: str


@dataclass(frozen=True)
class Summary:
    """Content of the strip above the tabs."""

    title: str
    figures: tuple[Figure, ...]
    phases: tuple[Share, ...]
    #: What the shares are shares of.
    whole: str
    #: What went wrong or is missing, one line each.
    notes: tuple[str, ...]

    @property
    def line(self) -> str:
        """The figures in one line of text."""
        return ", ".join(f"{figure.title} {figure.text}" for figure in self.figures)


def summary(trace: Trace, name: str | None = None, status: str | None = None) -> Summary:
    """The strip of `trace`; `status` says how the recorded program ended, where it did not end well."""
    title = name or trace.label or "profile"
    whole = "Time in ops" if outside_ops_ns(trace) is None else "Wall time"
    return Summary(title, _figures(trace), phase_shares(trace), whole, _notes(trace, status))


@once_a_trace
def _figures(trace: Trace) -> tuple[Figure, ...]:
    is_op = counted_ops(trace)
    # Stacks hold Python frames of threads that ran no op, and of the moments after the last step.
    runs = (trace.kind == OP) | (trace.kind == SCOPE)
    found = [
        Figure("wall", units.duration(wall_ns(trace)), _WALL_OF_PARTS if len(trace.windows) > 1 else _WALL),
        Figure("in ops", units.duration(in_ops_ns(trace)), "time in ops, all threads together"),
        Figure("ops", units.number(int(is_op.sum())), "calls of ops, nested ones too, as in the table of operators"),
    ]
    if has_steps(trace):
        # A data loader's last look for a batch that is not there is a scope of a step without ops.
        steps = np.unique(trace.step[trace.kind == OP])
        found.append(Figure("steps", units.number(len(steps)), "profiler steps with ops"))
    found += [
        Figure("threads", units.number(len(np.unique(trace.track[runs]))), "threads with ops or scopes"),
    ]
    if np.any(trace.is_device_work):
        kernels_ns = int(trace.duration_ns[trace.is_device_work].sum())
        found.append(Figure("on device", units.duration(kernels_ns), "time of all kernels"))
    if (peak := peak_bytes(trace)) is not None:
        found.append(Figure("peak memory", units.nbytes(peak), "most bytes held at once, of one device"))
    if trace.overhead_ns >= 0:
        found.append(
            Figure(
                "profiler",
                f"≈ {units.duration(trace.overhead_ns)}",
                "its start and line marks, as measured, and an estimate for each event; not its end, after the wall",
            )
        )
    return tuple(found)


def wall_ns(trace: Trace) -> int:
    """The length of all recorded windows together; what the events span where no window is known."""
    return sum(ended - began for began, ended in trace.windows) or span_ns(trace)


def span_ns(trace: Trace) -> int:
    """From the start of the first window to the end of the last; what the events span where no window is known."""
    if trace.ended_ns > trace.began_ns:
        return trace.ended_ns - trace.began_ns
    return int(trace.end_ns.max() - trace.start_ns.min()) if len(trace) else 0


@once_a_trace
def outside_ops_ns(trace: Trace) -> int | None:
    """The wall time less the time in ops and the profiler's own time.

    None where ops ran at once, so that their time is no part of it.
    None too where ops are missing, or a schedule chose steps: what ran between its windows was not recorded.
    """
    left_ns = wall_ns(trace) - in_ops_ns(trace) - trace.own_ns
    is_known = left_ns >= 0 and trace.has_all_ops and not _has_windows(trace) and not _ran_at_once(trace)
    return left_ns if is_known else None


def _has_windows(trace: Trace) -> bool:
    return averaged_name(STEP_PREFIX) in map(averaged_name, trace.names)


def _ran_at_once(trace: Trace) -> bool:
    """Whether two threads were in ops at one moment; of an op that changes threads nobody knows."""
    rows = np.flatnonzero(counted_ops(trace))
    if trace.is_async[rows].any():
        return True
    starts, ends, thread = trace.start_ns[rows], trace.end_ns[rows], trace.track[rows]
    reached = np.maximum.accumulate(ends)
    # Of what began earlier, the op that ends last: on one thread, what overlaps is nested.
    last = np.maximum.accumulate(np.where(ends == reached, np.arange(len(rows)), 0))
    return bool(((starts[1:] < reached[:-1]) & (thread[1:] != thread[last[:-1]])).any())


@once_a_trace
def has_steps(trace: Trace) -> bool:
    """Whether the program told of steps: without, all that it did is step 0."""
    return bool(trace.step[(trace.kind == OP) | (trace.kind == SCOPE)].any())


def peak_bytes(trace: Trace) -> int | None:
    """The most bytes that any one device's allocator held; None where memory was not recorded."""
    if not has_memory(trace):
        return None
    peaks = (peak(memory_curve(trace, device)) for device in memory_devices(trace))
    return max((found.nbytes for found in peaks if found is not None), default=0)


@once_a_trace
def phase_shares(trace: Trace) -> tuple[Share, ...]:
    """The self time of ops by phase, in the order in which a step runs, then what ran outside ops; nothing empty."""
    costs, is_op = op_costs(trace), counted_ops(trace)
    time = np.zeros(len(PHASES), np.int64)
    np.add.at(time, trace.phase[is_op], costs.self_ns[is_op])
    parts = [*zip(PHASES, time.tolist(), strict=True), (OUTSIDE, outside_ops_ns(trace) or 0)]
    if outside_ops_ns(trace) is not None:
        parts.append((PROFILER, trace.own_ns))
    whole = sum(ns for _, ns in parts)
    return tuple(Share(phase, ns, units.share(ns, whole)) for phase, ns in parts if ns and time.any())


def why_empty(trace: Trace) -> str:
    """Why a trace without events has none."""
    return _NOTHING_LEFT if trace.is_partial else _NOTHING


def _notes(trace: Trace, status: str | None) -> tuple[str, ...]:
    notes = [status] if status else []
    if not len(trace):
        notes.append(why_empty(trace))
    outside_ns, whole_ns = outside_ops_ns(trace) or 0, wall_ns(trace)
    if len(trace) and outside_ns >= max(whole_ns * _NOTED_SHARE, _NOTED_NS):
        where = "the lines tell where" if trace.outside else "the times of ops and lines are without it"
        cost_ns = min(max(trace.overhead_ns - trace.own_ns, 0), outside_ns)
        # Recording in C++ takes its time inside the ops; recording in Python, between them.
        recording = "" if "dispatch" not in trace.hooks else f"recording itself (≈ {units.duration(cost_ns)}), "
        notes.append(
            f"{units.duration(outside_ns)} of {units.duration(whole_ns)} passed outside ops, in {recording}"
            f"Python code, waiting or input: {where}."
        )
    if lacks_memory(trace).any():
        notes.append(_MEMORY_IN_PART if has_memory(trace) else NO_MEMORY)
    if trace.dropped:
        exactly = "" if trace.dropped_exactly else "At least "
        dropped = units.plural(trace.dropped, "event")
        notes.append(f"{exactly}{dropped} dropped: the recording was full. Raise max_events to keep them.")
    return tuple(notes)
