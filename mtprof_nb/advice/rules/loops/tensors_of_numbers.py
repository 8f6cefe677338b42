"""Tensors that are made of Python numbers again and again."""

from __future__ import annotations

import numpy as np

from mtprof_nb.advice.causes.number_conversions import Conversions, conversions
from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.groups import sums
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.program_time.data_loading import during, loader_calls
from mtprof_nb.analysis.program_time.gaps import LONGEST_GAP_NS
from mtprof_nb.analysis.program_time.recorded_time import of_recorded, recorded_ns
from mtprof_nb.model.intervals import covered_length
from mtprof_nb.model.trace import Int64, Trace

_LEAST_CALLS, _LEAST_SHARE = 32, 0.05
#: Looking at numbers takes as long as filling them in, and over twice as long for those of numpy: other work before
#: a call, such as that which made the numbers, is none of it.
_LONGEST_LOOK = 3
_FIX = """\
x = torch.tensor(rows)  # once, before the loop, of all rows or numbers; then x[i] in the loop
# rows of different lengths: one tensor of the numbers of all rows, then x.split(lengths)
# or keep numbers in numpy: torch.as_tensor(array, dtype=torch.float32) looks at none of them in Python"""


@rule
def tensors_of_numbers(trace: Trace) -> Finding | None:
    """Find the line whose calls of `torch.tensor` with Python numbers take longest: Python looks at each number.

    The upper bound contains the time before each call in which the numbers may have been looked at.
    """
    made, caused = conversions(trace), attribution(trace)
    line = caused.line[made.last]
    chosen = (line >= 0) & ~during(trace, loader_calls(trace))[made.first]
    of_line = sums(line[chosen], made.inside_ns[chosen], len(caused.lines))
    number = int(of_line.argmax()) if len(of_line) else -1
    calls = np.flatnonzero(chosen & (line == number))
    inside_ns, looking_ns, after_ns = _times(trace, made, calls)
    if len(calls) < _LEAST_CALLS or inside_ns < _LEAST_SHARE * recorded_ns(trace):
        return None
    marked = (trace.outside or {}).get(caused.lines[number])
    if marked is not None:
        looking_ns = min(looking_ns, marked.own_ns)
    return Finding(
        "Tensors are made of Python numbers again and again",
        f"{units.plural(len(calls), 'call')} of torch.tensor or the like on this line take "
        f"{of_recorded(trace, inside_ns)}; before that, Python looks "
        f"at each number, for at most {units.duration(looking_ns)}.",
        _FIX,
        caused.lines[number],
        found_ns=inside_ns + looking_ns,
        at_most_ns=inside_ns + looking_ns + after_ns,
    )


def _times(trace: Trace, made: Conversions, calls: Int64) -> tuple[int, int, int]:
    """Three times around these calls, none counted twice.

    The calls themselves; before them, looking at their numbers; after them, releasing their tensors.
    """
    calls = calls[np.argsort(trace.start_ns[made.first[calls]], kind="stable")]
    starts, ends = trace.start_ns[made.first[calls]], trace.end_ns[made.last[calls]]
    looks = starts - np.minimum(made.before_ns[calls], _LONGEST_LOOK * made.inside_ns[calls])
    by_look = np.argsort(looks, kind="stable")
    inside_ns = covered_length(starts, ends)
    looking_ns = covered_length(looks[by_look], ends[by_look]) - inside_ns
    released = ends + np.minimum(made.after_ns[calls], LONGEST_GAP_NS)
    return inside_ns, looking_ns, covered_length(looks[by_look], released[by_look]) - inside_ns - looking_ns
