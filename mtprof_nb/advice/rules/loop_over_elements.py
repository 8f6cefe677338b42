"""Python loops that take one element of a tensor after the other."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.causes.enclosing_functions import lines_of_loop
from mtprof_nb.analysis.causes.gaps import outermost_ops
from mtprof_nb.analysis.causes.recorded_time import recorded_ns, time_with_callees
from mtprof_nb.analysis.causes.spent_time import spent_ns
from mtprof_nb.analysis.causes.taken_elements import SELECT, taken_elements
from mtprof_nb.analysis.groups import numbered_alike
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.nesting import nesting
from mtprof_nb.model.intervals import covered, covered_length, runs_of_equal
from mtprof_nb.model.trace import BACKWARD, OPTIMIZER, Bool, Int64, Trace

_LEAST_ELEMENTS = 32
#: Of an op that takes longer, one call on the whole tensor saves little. A loop of such ops is one over batches.
_LARGE_OP_NS = 200_000
_MOST_LARGE = 0.5
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
    found = [(_loop_ns(trace, loop), loop) for loop in _loops(trace)]
    found = [(times, loop) for times, loop in found if any(times)]
    if not found:
        return None
    (loop_ns, backward_ns), loop = max(found, key=lambda pair: (sum(pair[0]), pair[1].elements.max()))
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


def _loop_ns(trace: Trace, loop: _Loop) -> tuple[int, int]:
    """The time of the passes of a loop, and, outside of them, of the backward pass of their ops; 0 for batches.

    The time after the last element is that of an average one. Iteration over a tensor takes all elements before the
    first pass: then the time is that of the lines of the loop, with the backward pass of their ops.
    """
    parent = int(nesting(trace).parent[loop.first[0]])
    if parent >= 0 and trace.names[trace.name[parent]] == "aten::unbind":
        lines = lines_of_loop(trace, attribution(trace).lines[loop.line])
        return min(time_with_callees(trace, lines), recorded_ns(trace)), 0
    starts, passed = trace.start_ns[loop.first], trace.start_ns[loop.last] - trace.start_ns[loop.first]
    ends = trace.start_ns[loop.last] + passed // (loop.elements - 1)
    loop_ns = min(covered_length(starts, ends), recorded_ns(trace))
    inside = covered(starts, ends, trace.start_ns)
    between = covered(starts, trace.start_ns[loop.last], trace.start_ns)
    if np.any(between & (trace.phase == OPTIMIZER)) or _large_ops_ns(trace, between) > _MOST_LARGE * loop_ns:
        return 0, 0
    backward = (trace.phase == BACKWARD) & (trace.forward >= 0) & inside[trace.forward] & ~inside
    return loop_ns, spent_ns(trace, backward)


def _large_ops_ns(trace: Trace, inside: Bool) -> int:
    """The time of these events in ops of a name that is mostly large, without the backward pass."""
    outer, is_large = outermost_ops(trace), np.zeros(len(trace), np.bool_)
    outer = outer[inside[outer] & (trace.phase[outer] != BACKWARD) & ~trace.where_name(SELECT.__eq__)[outer]]
    for name in set(trace.name[outer].tolist()):
        rows = outer[trace.name[outer] == name]
        is_large[rows] = np.median(trace.duration_ns[rows]) >= _LARGE_OP_NS  # a busy machine delays some small ones
    return spent_ns(trace, is_large)


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
    return runs[[bool((steps[first:last] == direction).any()) for first, last in runs.tolist()]]
