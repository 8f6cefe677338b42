"""The key figures of a recording: wall time, time in ops and outside, phases, steps, peak memory."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from mtprof_nb.analysis import units
from mtprof_nb.analysis.costs import counted_ops, in_ops_ns, op_costs
from mtprof_nb.analysis.groups import sums
from mtprof_nb.analysis.memory.memory_curve import memory_curve, memory_devices, peak
from mtprof_nb.analysis.memory.missing_memory import has_memory
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.analysis.ranks.ranked_processes import step_starts_of_processes, trace_of_process
from mtprof_nb.model.trace import COMPILING, OP, PHASES, SCOPE, STEP_PREFIX, Trace


@dataclass(frozen=True)
class Summary:
    """The key figures of a recording, in nanoseconds and bytes. A figure is None if unknown or not recorded."""

    label: str
    #: Recorded time, without the time between windows; time in which several processes were recorded counts once.
    wall_ns: int
    #: Self time of all ops, summed over threads.
    in_ops_ns: int
    #: Wall time outside ops and the profiler; None if ops overlap, ops are missing, or there are several processes.
    outside_ns: int | None
    #: Wall time outside ops that the profiler itself took.
    profiler_ns: int
    #: Estimated time that recording added, including `profiler_ns`.
    overhead_ns: int | None
    #: Self time of the ops of each phase, and the time of compiling.
    phases_ns: dict[str, int]
    #: Number of calls of ops, including nested ones.
    ops: int
    #: Number of profiler steps with ops; None if the program called no `step()`.
    steps: int | None
    #: Number of threads with ops or scopes.
    threads: int
    #: Time of all kernels, copies, sets and collectives; None if no device was recorded.
    device_ns: int | None
    #: The most bytes held at once, of one device in one process.
    peak_bytes: int | None
    #: Up to when the recording is complete if it was full, and facts of a file that are inexact, one sentence each.
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The figures by name, as plain values for JSON."""
        return asdict(self) | {"notes": list(self.notes)}


@once_a_trace
def summary(trace: Trace) -> Summary:
    costs, is_op = op_costs(trace), counted_ops(trace)
    phases_ns = sums(trace.phase[is_op], costs.self_ns[is_op], len(PHASES))
    # Stacks hold Python frames of threads that ran no op, and of the moments after the last step.
    runs = (trace.kind == OP) | (trace.kind == SCOPE)
    work = trace.is_device_work
    return Summary(
        label=trace.label,
        wall_ns=wall_ns(trace),
        in_ops_ns=in_ops_ns(trace),
        outside_ns=outside_ops_ns(trace),
        profiler_ns=trace.own_ns,
        overhead_ns=trace.overhead_ns if trace.overhead_ns >= 0 else None,
        phases_ns=dict(zip(PHASES, phases_ns.tolist(), strict=True)),
        ops=int((is_op & (trace.phase != COMPILING)).sum()),
        steps=len(marked_steps(trace)) if has_steps(trace) else None,
        threads=len(np.unique(trace.track[runs])),
        device_ns=int(trace.duration_ns[work].sum()) if work.any() else None,
        peak_bytes=peak_bytes(trace),
        notes=(*coverage_notes(trace), *trace.notes),
    )


def wall_ns(trace: Trace) -> int:
    """The time that the recorded windows cover; what the events span where no window is known."""
    covered_ns, reached = 0, 0
    for began, ended in trace.windows:
        covered_ns += max(ended - max(began, reached), 0)
        reached = max(reached, ended)
    return covered_ns or span_ns(trace)


def covered_part(trace: Trace) -> str:
    """As "the first 5.00 s of 10.0 s" where the recording was full before the program ended; "" where it is whole."""
    if not trace.unrecorded:
        return ""
    covered_ns = wall_ns(trace)
    ran_ns = covered_ns + sum(span.ended_ns - span.began_ns for span in trace.unrecorded)
    which = "the first " if len(trace.windows) < 2 else ""
    return f"{which}{units.duration(covered_ns)} of {units.duration(ran_ns)}"


def coverage_notes(trace: Trace, name: str = "") -> tuple[str, ...]:
    """A sentence for each process that was recorded in part: which part of the run the figures cover, and why.

    `name` is the name of the recording, where there are several.
    """
    if len(trace.processes) == 1 or not trace.process_facts:
        reasons = dict.fromkeys(span.reason for span in trace.unrecorded)
        return (f"{name or 'This recording'} covers {covered_part(trace)}: {', '.join(reasons)}.",) if reasons else ()
    titles = [f"{one.title[:1].upper()}{one.title[1:]}{name and f' of {name}'}" for one in trace.processes]
    parts = (coverage_notes(trace_of_process(trace, number), title) for number, title in enumerate(titles))
    return tuple(note for notes in parts for note in notes)


def span_ns(trace: Trace) -> int:
    """From the start of the first window to the end of the last; without windows, the span of the events."""
    if trace.ended_ns > trace.began_ns:
        return trace.ended_ns - trace.began_ns
    return int(trace.end_ns.max() - trace.start_ns.min()) if len(trace) else 0


@once_a_trace
def outside_ops_ns(trace: Trace) -> int | None:
    """The wall time less the time in ops and the profiler's own time.

    None where ops ran at once, so that their time is no part of it; None for several processes, which share no time.
    None too where ops are missing, or a schedule chose steps: what ran between its windows was not recorded.
    """
    has_windows = any(name.startswith(STEP_PREFIX) for name in trace.names)
    if len(trace.processes) > 1 or not trace.has_all_ops or has_windows:
        return None
    left_ns = wall_ns(trace) - in_ops_ns(trace) - trace.own_ns
    return None if left_ns < 0 or _ran_at_once(trace) else left_ns


def _ran_at_once(trace: Trace) -> bool:
    """Whether ops of two threads overlapped. Assumed for an op that ends on another thread."""
    rows = np.flatnonzero(counted_ops(trace))
    if trace.is_async[rows].any():
        return True
    starts, ends, thread = trace.start_ns[rows], trace.end_ns[rows], trace.track[rows]
    reached = np.maximum.accumulate(ends)
    # Of what began earlier, the op that ends last: on one thread, what overlaps is nested.
    last = np.maximum.accumulate(np.where(ends == reached, np.arange(len(rows)), 0))
    return bool(((starts[1:] < reached[:-1]) & (thread[1:] != thread[last[:-1]])).any())


@once_a_trace
def marked_steps(trace: Trace) -> list[int]:
    """The numbers of the steps with ops. What ran after a loop over `steps()` is no step."""
    # A data loader's last look for a batch that is not there is a scope of a step without ops.
    with_ops = set(np.unique(trace.step[trace.kind == OP]).tolist())
    starts = step_starts_of_processes(trace)
    listed = {number for of_process in starts for _, number in of_process}
    return sorted(with_ops & listed if all(starts) else with_ops)


@once_a_trace
def has_steps(trace: Trace) -> bool:
    """Whether the program marked steps; otherwise all events are of step 0."""
    return bool(trace.step[(trace.kind == OP) | (trace.kind == SCOPE)].any())


def peak_bytes(trace: Trace) -> int | None:
    """The most bytes that any one allocator held, of one device in one process; None where memory was not recorded."""
    if not has_memory(trace):
        return None
    if trace.allocations is not None:
        return int(trace.allocations.total.max()) if len(trace.allocations) else 0
    peaks = (peak(memory_curve(trace, device)) for device in memory_devices(trace))
    return max((top.nbytes for top in peaks if top is not None), default=0)
