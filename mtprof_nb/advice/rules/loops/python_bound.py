"""Programs whose ops are so small that Python takes the time between them."""

from __future__ import annotations

import numpy as np

from mtprof_nb.advice.causes.number_conversions import is_for_numbers
from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.program_time.data_loading import during, loader_calls
from mtprof_nb.analysis.program_time.gaps import LONGEST_GAP_NS, gaps_before, outermost_ops
from mtprof_nb.analysis.program_time.recorded_time import line_with_most, of_recorded, recorded_ns
from mtprof_nb.analysis.program_time.recording_cost import between_ops_ns
from mtprof_nb.model.trace import BACKWARD, Int64, Trace

#: A shorter op may be nothing but the way to its kernel, which larger tensors or `torch.compile` save, too.
_SMALL_OP_NS = 20_000
_LEAST_OPS, _LEAST_SHARE = 500, 0.3
_FIX = "model = torch.compile(model)  # or give each op more: larger batches, fewer and larger tensors"


@rule
def bound_by_python(trace: Trace) -> Finding | None:
    """Find many short gaps between ops of one thread, without a device.

    The time for recording does not count, nor does that for tensors of Python numbers and for loading batches, which
    have rules of their own.
    Where recording took most of the gaps, `recording_notes` has a note.
    """
    rows = _ops_of_busiest_thread(trace)
    if len(rows) < _LEAST_OPS or trace.on_device.any():
        return None
    gaps = gaps_before(trace)[rows]
    short = np.where((gaps < LONGEST_GAP_NS) & ~is_for_numbers(trace)[rows], gaps, 0)
    least_ns, most_ns = between_ops_ns(trace, rows)
    recording_ns = most_ns + _marks_ns(trace)
    ns = int(short.sum()) - recording_ns
    if ns < max(_LEAST_SHARE * recorded_ns(trace), recording_ns):
        return None
    return Finding(
        "Python takes the time between small ops",
        f"{units.plural(len(rows), 'op')} of {units.duration(int(trace.duration_ns[rows].mean()))} on average; "
        f"the short gaps between them are {of_recorded(trace, ns)}.",
        _FIX,
        line_with_most(trace, rows, short),
        found_ns=ns + _small_ops_ns(trace),
        at_most_ns=int(short.sum()) - least_ns - _marks_ns(trace) + _small_ops_ns(trace),
    )


def _marks_ns(trace: Trace) -> int:
    """A lower bound of the time of line marks: the profiler's own time without its start, before all events."""
    return max(trace.own_ns - (int(trace.start_ns[0]) - trace.began_ns), 0)


def _small_ops_ns(trace: Trace) -> int:
    """The time of all small outermost ops, the backward pass included."""
    lengths = trace.duration_ns[_outside_of_loading(trace)]
    return int(lengths[lengths < _SMALL_OP_NS].sum())


def _ops_of_busiest_thread(trace: Trace) -> Int64:
    """The outermost ops of the thread with most of them, without the backward pass, which needs no Python."""
    rows: Int64 = _outside_of_loading(trace)
    rows = rows[trace.phase[rows] != BACKWARD]
    return rows[trace.track[rows] == np.bincount(trace.track[rows]).argmax()] if len(rows) else rows


def _outside_of_loading(trace: Trace) -> Int64:
    """The outermost ops that do not run inside a DataLoader's `next`."""
    rows = outermost_ops(trace)
    outside: Int64 = rows[~during(trace, loader_calls(trace))[rows]]
    return outside
