"""Tensors that are made of Python numbers again and again."""

from __future__ import annotations

import numpy as np

from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.causes.data_loading import during, loader_calls
from mtprof_nb.analysis.causes.number_conversions import conversions
from mtprof_nb.analysis.causes.recorded_time import recorded_ns
from mtprof_nb.analysis.groups import sums
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.model.trace import Trace

_LEAST_CALLS, _LEAST_SHARE = 32, 0.05
_FIX = """\
x = torch.tensor(rows)  # once, before the loop, of all rows; then x[i] in the loop
# or keep numbers in numpy: torch.as_tensor(array, dtype=torch.float32) looks at none of them in Python"""


@rule
def tensors_of_numbers(trace: Trace) -> Finding | None:
    """Find the line whose calls of `torch.tensor` with Python numbers take longest: Python looks at each number.

    The upper bound contains the time before each call, in which the numbers were looked at.
    """
    made, caused = conversions(trace), attribution(trace)
    line = caused.line[made.last]
    chosen = (line >= 0) & ~during(trace, loader_calls(trace))[made.first]
    inside_ns = sums(line[chosen], made.inside_ns[chosen], len(caused.lines))
    number = int(inside_ns.argmax()) if len(inside_ns) else -1
    on_line = chosen & (line == number)
    calls = int(np.count_nonzero(on_line))
    if calls < _LEAST_CALLS or inside_ns[number] < _LEAST_SHARE * recorded_ns(trace):
        return None
    return Finding(
        "Tensors are made of Python numbers again and again",
        f"{units.plural(calls, 'call')} of torch.tensor or the like on this line take "
        f"{units.duration(int(inside_ns[number]))} of {units.duration(recorded_ns(trace))}; before that, Python looks "
        f"at each number, for at most {units.duration(int(made.before_ns[on_line].sum()))}.",
        _FIX,
        caused.lines[number],
        at_most_ns=int((made.inside_ns + made.before_ns)[on_line].sum()),
    )
