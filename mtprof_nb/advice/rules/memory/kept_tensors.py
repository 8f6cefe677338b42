"""Memory that grows from step to step."""

from __future__ import annotations

import numpy as np

from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.groups import sums
from mtprof_nb.analysis.memory.memory_curve import held_at_peak, line_of_most, lines_of_records
from mtprof_nb.analysis.memory.missing_memory import lacks_memory
from mtprof_nb.analysis.steps.step_times import step_times
from mtprof_nb.analysis.summary import peak_bytes
from mtprof_nb.model.trace import SCOPE, Int64, Trace

_LEAST_STEPS = 4
_STEP = "Optimizer.step#"
_FIX = """\
losses.append(loss.item())  # keep numbers, not tensors with their graphs; x.detach() keeps x alone
state = state.detach()  # between steps of a recurrent model"""


@rule
def grows_each_step(trace: Trace) -> Finding | None:
    """Find memory that each step allocates and never releases; needs memory, and four steps or optimizer steps.

    The first step may make what all others use, and what the last one made may still be in use: neither has to keep
    memory. What lines that keep memory in all others keep in these, the fix may save, too.
    """
    records, at_peak, ends = trace.allocations, held_at_peak(trace), _ends_of_steps(trace)
    if records is None or at_peak is None or len(ends) < _LEAST_STEPS or lacks_memory(trace).any():
        return None
    rows = at_peak.rows[~at_peak.is_released(at_peak.rows)]
    step = np.searchsorted(ends, records.time_ns[rows])
    line = lines_of_records(trace, records)[rows]
    is_inner = (step > 0) & (step < len(ends) - 1)
    by_step = sums(step[is_inner], records.nbytes[rows[is_inner]], len(ends))[1:-1]
    rows, kept = rows[np.isin(line, line[is_inner])], int(by_step.sum())
    if not by_step.min() or by_step.min() < np.median(by_step) / 2:
        return None
    return Finding(
        "Memory grows from step to step",
        f"In each of {len(by_step)} steps about {units.nbytes(int(np.median(by_step)))} are allocated and not "
        f"released: {units.nbytes(kept)} of {units.nbytes(peak_bytes(trace) or 0)} at the peak.",
        _FIX,
        line_of_most(trace, records, rows)[0],
        at_most_bytes=int(records.nbytes[rows].sum()),
    )


def _ends_of_steps(trace: Trace) -> Int64:
    """When each step ended: a marked one, or one of an optimizer."""
    if marked := step_times(trace):
        return np.array([step.start_ns + step.duration_ns for step in marked], np.int64)
    steps = (trace.kind == SCOPE) & trace.where_name(lambda name: name.startswith(_STEP))
    ends: Int64 = trace.end_ns[steps]
    return ends
