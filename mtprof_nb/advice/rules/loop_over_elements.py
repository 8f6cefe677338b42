"""Python loops that take one element of a tensor after the other."""

from __future__ import annotations

from heapq import nlargest
from typing import Any, NamedTuple

import numpy as np

from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.causes.enclosing_functions import lines_of_loop
from mtprof_nb.analysis.causes.gaps import outermost_ops
from mtprof_nb.analysis.causes.recorded_time import caused_by, recorded_ns, time_with_callees
from mtprof_nb.analysis.causes.spent_time import spent_ns
from mtprof_nb.analysis.causes.taken_elements import SELECT, taken_elements
from mtprof_nb.analysis.costs import op_costs
from mtprof_nb.analysis.groups import numbered_alike
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.nesting import nesting
from mtprof_nb.model.intervals import covered, covered_length, runs_of_equal
from mtprof_nb.model.trace import BACKWARD, OPTIMIZER, Bool, Int64, SourceLine, Trace

_LEAST_ELEMENTS = 32
#: Of an op that takes longer, one call on the whole tensor saves little. A loop of such ops is one over batches.
_LARGE_OP_NS = 200_000
_MOST_LARGE = 0.5
#: So many loops, the longest, are looked at closely.
_LOOKED_AT = 5
_ITERATES = "aten::unbind"
_FIX = """\
# if an element does not need the result of the one before: one op on the whole tensor
y = f(x)  # instead of: for i in range(len(x)): y[i] = f(x[i])
# if it does, as in a recurrent network: a module for the whole sequence, such as nn.GRU"""


class _Loop(NamedTuple):
    """A loop over elements: its line, the tensor's shape, and of each pass the elements, the first and the last op."""

    line: int
    shape: tuple[Any, ...]
    elements: Int64
    first: Int64
    last: Int64


@rule
def loop_over_elements(trace: Trace) -> Finding | None:
    """Find the longest loop that indexes a tensor with 0, 1, 2, … one after the other; needs shapes.

    Silent for a loop over batches: its passes update parameters, or large ops take most of their time.
    """
    found = [(loop_ns, _backward_ns(trace, loop, loop_ns), loop) for loop_ns, loop in _longest(trace)]
    times = [(loop_ns, backward_ns, loop) for loop_ns, backward_ns, loop in found if backward_ns is not None]
    if not times:
        return None
    loop_ns, backward_ns, loop = max(times, key=lambda one: (one[0] + one[1], one[2].elements.max()))
    # The time after the last element may have ops of other lines, and a backward pass of these.
    backward = f"; its backward pass takes {units.duration(backward_ns)}" if 20 * backward_ns >= loop_ns else ""
    return Finding(
        "A Python loop goes through a tensor element by element",
        f"The line takes {units.number(int(loop.elements.max()))} elements of a tensor {list(loop.shape)} one after "
        f"the other; the loop takes {units.duration(loop_ns)} of {units.duration(recorded_ns(trace))}{backward}.",
        _FIX,
        attribution(trace).lines[loop.line],
        at_most_ns=min(loop_ns + backward_ns, recorded_ns(trace)),
    )


def _longest(trace: Trace) -> list[tuple[int, _Loop]]:
    """The few loops that take longest, with the time of each.

    Iteration over a tensor takes all elements before the first pass: then the time is that of the lines of the loop,
    with the backward pass of their ops.
    """
    found, of_line, most_ns = [], dict[int, int](), recorded_ns(trace)
    for loop in _loops(trace):
        if not _is_iteration(trace, loop):
            ns = covered_length(*_passed(trace, loop))
        elif (ns := of_line.get(loop.line, -1)) < 0:
            ns = of_line[loop.line] = time_with_callees(trace, _lines_in(trace, loop))
        found.append((min(ns, most_ns), loop))
    longest = nlargest(_LOOKED_AT, found, key=lambda pair: (pair[0], pair[1].elements.max()))
    return [(ns, loop) for ns, loop in longest if ns]


def _is_iteration(trace: Trace, loop: _Loop) -> bool:
    parent = int(nesting(trace).parent[loop.first[0]])
    return parent >= 0 and trace.names[trace.name[parent]] == _ITERATES


def _lines_in(trace: Trace, loop: _Loop) -> set[SourceLine]:
    return lines_of_loop(trace, attribution(trace).lines[loop.line])


def _passed(trace: Trace, loop: _Loop) -> tuple[Int64, Int64]:
    """Start and end of each pass through the elements. The time after the last element is that of an average one."""
    starts, lasts = trace.start_ns[loop.first], trace.start_ns[loop.last]
    return starts, lasts + (lasts - starts) // (loop.elements - 1)


def _backward_ns(trace: Trace, loop: _Loop, loop_ns: int) -> int | None:
    """The time of the backward pass of a loop's ops that `loop_ns` does not contain; None for a loop over batches."""
    if _is_iteration(trace, loop):
        between = inside = caused_by(trace, _lines_in(trace, loop))
    else:
        starts, ends = _passed(trace, loop)
        inside = covered(starts, ends, trace.start_ns)
        between = covered(starts, trace.start_ns[loop.last], trace.start_ns)
    if np.any(between & (trace.phase == OPTIMIZER)) or _large_ops_ns(trace, between) > _MOST_LARGE * loop_ns:
        return None
    backward = (trace.phase == BACKWARD) & (trace.forward >= 0) & inside[trace.forward] & ~inside
    return spent_ns(trace, backward)


def _large_ops_ns(trace: Trace, inside: Bool) -> int:
    """The time of these events in ops of a name that is mostly large, on the host or a device, without backward."""
    outer, is_large = outermost_ops(trace), np.zeros(len(trace), np.bool_)
    is_take = trace.where_name((SELECT, _ITERATES).__contains__)
    outer = outer[inside[outer] & (trace.phase[outer] != BACKWARD) & ~is_take[outer]]
    device_ns = op_costs(trace).device_ns
    length = trace.duration_ns if device_ns is None else np.maximum(trace.duration_ns, device_ns)
    for run in runs_of_equal(trace.name[outer]):
        rows = outer[run]
        is_large[rows] = np.median(length[rows]) >= _LARGE_OP_NS  # a busy machine delays some small ones
    return spent_ns(trace, is_large) if is_large.any() else 0


def _loops(trace: Trace) -> list[_Loop]:
    """The loops that take consecutive elements of a tensor, by line, thread, dimension and shape.

    Silent where an element is computed from the one before, as in autoregressive decoding.
    """
    taken = taken_elements(trace)
    if taken is None or trace.shape is None:
        return []
    fed = np.bincount(taken.tensor[taken.is_fed], minlength=len(taken.event))
    line, found = attribution(trace).line[taken.event], []
    selected = np.flatnonzero(~taken.is_slice)
    for run in runs_of_equal(numbered_alike([line[selected], taken.tensor[selected]])[0]):
        rows = selected[run]
        first = rows[0]
        shape = trace.shapes[trace.shape[taken.event[first]]][0]
        loop = _loop(int(line[first]), shape, np.stack([taken.index[rows], taken.event[rows]], axis=1))
        if loop is not None and 2 * fed[taken.tensor[first]] < loop.elements.max():
            found.append(loop)
    return found


def _loop(line: int, shape: tuple[Any, ...], pairs: Int64) -> _Loop | None:
    """The passes in which each index is the one before or one more, or one less; None if none has 32 elements.

    The index of an outer loop comes again for each element of the inner one. Passes of a loop may differ in length, as
    those over the rows of a triangle.
    """
    steps = np.diff(pairs[:, 0])
    passes = np.concatenate([_passes(steps, 1), _passes(steps, -1)])
    passes = passes[np.argsort(passes[:, 0], kind="stable")]
    first, last = passes.T
    elements = np.abs(pairs[last, 0] - pairs[first, 0]) + 1
    if int(elements.max(initial=0)) < _LEAST_ELEMENTS:
        return None
    return _Loop(line, shape, elements, pairs[first, 1], pairs[last, 1])


def _passes(steps: Int64, direction: int) -> Int64:
    """First and last position of each run of steps in one direction, or none, with one step at least."""
    is_step = np.isin(steps, (0, direction))
    ends: Int64 = np.flatnonzero(np.diff(np.concatenate(([False], is_step, [False])).astype(np.int8)))
    runs = ends.reshape(-1, 2)
    taken = np.cumsum(np.append(0, steps == direction))
    return runs[taken[runs[:, 1]] > taken[runs[:, 0]]]
