"""Calls of `torch.tensor` with Python numbers: the ops that they run, and how long they take."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtprof_nb.analysis.nesting import is_among
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.analysis.program_time.gaps import gaps_around, gaps_before, outermost_ops
from mtprof_nb.model.trace import Bool, Int64, Trace

#: Memory is allocated, filled with the numbers by Python, and becomes a tensor.
_OPS = ("aten::empty", "aten::to", "aten::lift_fresh")


@dataclass(frozen=True, eq=False)
class Conversions:
    """Calls that made a tensor of Python numbers: their three ops, and how long each call took."""

    first: Int64
    second: Int64
    last: Int64
    #: From the start of the first op to the end of the last.
    inside_ns: Int64
    #: The time before, in which Python looked at the numbers, and may have done other work.
    before_ns: Int64
    #: The time up to the next op or the end, in which the tensor may have been released.
    after_ns: Int64


@once_a_trace
def conversions(trace: Trace) -> Conversions:
    """All calls that made a tensor of Python numbers."""
    outer = outermost_ops(trace)
    outer = outer[np.argsort(trace.track[outer], kind="stable")]
    empty, to, fresh = (trace.where_name(name.__eq__)[outer] for name in _OPS)
    track = trace.track[outer]
    at = np.flatnonzero(empty[:-2] & to[1:-1] & fresh[2:] & (track[:-2] == track[2:]))
    first, last = outer[at], outer[at + 2]
    inside_ns = trace.end_ns[last] - trace.start_ns[first]
    return Conversions(first, outer[at + 1], last, inside_ns, gaps_before(trace)[first], gaps_around(trace)[1][last])


def is_for_numbers(trace: Trace) -> Bool:
    """The ops before which Python looks at the numbers for a tensor, or fills it with them."""
    made = conversions(trace)
    return is_among(trace, [made.first, made.second])
