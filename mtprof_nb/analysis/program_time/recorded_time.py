"""The time of the recorded program, without the profiler's own, and how much of it each line took."""

from __future__ import annotations

import numpy as np

from mtprof_nb.analysis import units
from mtprof_nb.analysis.costs import counted_ops, op_costs
from mtprof_nb.analysis.devices.kernel_owners import kernel_owners
from mtprof_nb.analysis.functions.sampled_lines import outside_by_line
from mtprof_nb.analysis.groups import sums
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.lines.line_costs import line_costs
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.analysis.ranks.rank_figures import rank_figures
from mtprof_nb.analysis.summary import summary, wall_ns
from mtprof_nb.model.trace import PHASES, Bool, Int64, SourceLine, Trace


def recorded_ns(trace: Trace) -> int:
    """The wall time less what the profiler took outside ops."""
    return max(wall_ns(trace) - trace.own_ns, 0)


def of_recorded(trace: Trace, ns: int) -> str:
    """A part of the recorded time, as "12.0 ms of 40.0 ms"."""
    return f"{units.duration(ns)} of {units.duration(recorded_ns(trace))}"


@once_a_trace
def program_ns(trace: Trace) -> int:
    """The time that all shares are of: in ops and outside, without the profiler's own.

    The wall time, unless threads or processes ran at once: then the time of all of them, as far as it is known.
    """
    wall_ns, lines_ns = outside_ns(trace), sum(one.own_ns for one in (outside_by_line(trace) or {}).values())
    is_one_thread = trace.samples is not None and len(np.unique(trace.samples.track)) == 1
    # Of one thread, lines exceed the wall time by the error of their estimate alone.
    known_ns = wall_ns if wall_ns is not None and is_one_thread else max(wall_ns or 0, lines_ns)
    return summary(trace).in_ops_ns + known_ns


def outside_ns(trace: Trace) -> int | None:
    """The time outside ops; of several processes the sum of theirs, waiting and communicating included.

    Processes with devices compute there, whatever their hosts do meanwhile: nothing is known of these together.
    """
    if len(trace.processes) < 2 or not trace.process_facts or trace.is_device_work.any():
        return summary(trace).outside_ns
    return sum(row.outside_ns + row.waiting_ns + row.communicating_ns for row in rank_figures(trace))


def whose_time(trace: Trace) -> str:
    """Whose time `program_ns` is: "program", or "threads" that ran at once, or "ops" if nothing is known outside."""
    if outside_ns(trace) == program_ns(trace) - summary(trace).in_ops_ns:
        return "program"
    return "threads" if program_ns(trace) > summary(trace).in_ops_ns else "ops"


@once_a_trace
def line_times(trace: Trace) -> dict[SourceLine, int]:
    """The time of each line itself: its ops in all phases, and where it is known its time outside ops."""
    ops = np.flatnonzero(counted_ops(trace))
    in_ops = _sums_by_line(trace, ops, op_costs(trace).self_ns[ops])
    times = dict(zip(attribution(trace).lines, in_ops.tolist(), strict=True))
    for line, outside in (outside_by_line(trace) or {}).items():
        times[line] = times.get(line, 0) + outside.own_ns
    return {line: ns for line, ns in times.items() if ns}


def line_device_times(trace: Trace) -> dict[SourceLine, int]:
    """The time on devices of the work of each line."""
    costs = line_costs(trace)
    times = () if costs.device_ns is None else costs.device_ns.tolist()
    return {line: ns for line, ns in zip(costs.lines, times, strict=False) if ns}


def device_phases_ns(trace: Trace) -> dict[str, int]:
    """The time of all work on devices in each phase; work has the phase of the op that launched it."""
    rows, owner = np.flatnonzero(trace.is_device_work), kernel_owners(trace)
    phase = trace.phase[np.where(owner[rows] >= 0, owner[rows], rows)]
    return dict(zip(PHASES, sums(phase, trace.duration_ns[rows], len(PHASES)).tolist(), strict=True))


def caused_by(trace: Trace, lines: set[SourceLine]) -> Bool:
    """The events that one of these lines caused, itself or by what it called."""
    caused = attribution(trace)
    numbers = {number for number, line in enumerate(caused.lines) if line in lines}
    is_caused = [False] * (len(caused.chains) + 1)
    for node, (line, caller) in enumerate(zip(caused.chains.line_of, caused.chains.parents, strict=True)):
        is_caused[node] = line in numbers or is_caused[caller]
    return np.array(is_caused, np.bool_)[caused.chain]


def slowest_line(trace: Trace, chosen: Bool) -> SourceLine | None:
    """The line whose chosen events have the most self time; None if none is known."""
    rows = np.flatnonzero(chosen)
    return line_with_most(trace, rows, op_costs(trace).self_ns[rows])


def line_of_longest(trace: Trace, rows: Int64) -> SourceLine | None:
    """The line whose events among `rows`, on the host or a device, last longest; None if none is known."""
    return line_with_most(trace, rows, trace.duration_ns[rows])


def line_with_most(trace: Trace, rows: Int64, values: Int64) -> SourceLine | None:
    """The line with the largest sum of `values`, one for each event of `rows`; None if that is 0."""
    total = _sums_by_line(trace, rows, values)
    return attribution(trace).lines[int(total.argmax())] if total.any() else None


def _sums_by_line(trace: Trace, rows: Int64, values: Int64) -> Int64:
    caused = attribution(trace)
    line = caused.line[rows]
    return sums(line[line >= 0], values[line >= 0], len(caused.lines))
