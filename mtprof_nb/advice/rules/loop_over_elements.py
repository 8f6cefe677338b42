"""Python loops that take one element of a tensor after the other."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np

from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.causes.data_loading import during, loader_calls
from mtprof_nb.analysis.causes.enclosing_functions import lines_of_loop
from mtprof_nb.analysis.causes.recorded_time import recorded_ns, time_with_callees
from mtprof_nb.analysis.causes.spent_time import spent_ns
from mtprof_nb.analysis.costs import counted_ops
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.nesting import nesting
from mtprof_nb.model.intervals import covered, covered_length
from mtprof_nb.model.trace import BACKWARD, FORWARD, OTHER, Bool, Int64, Trace

_LEAST_ELEMENTS = 32
_FIX = """\
# if an element does not need the result of the one before: one op on the whole tensor
y = f(x)  # instead of: for i in range(len(x)): y[i] = f(x[i])"""


class _Loop(NamedTuple):
    """A loop over elements: the line that takes them, the tensor's shape, and the first and last op of each pass."""

    line: int
    shape: tuple[Any, ...]
    elements: int
    first: Int64
    last: Int64


@rule
def loop_over_elements(trace: Trace) -> Finding | None:
    """Find the longest loop that indexes a tensor with 0, 1, 2, … one after the other; needs shapes."""
    found = [(_loop_ns(trace, loop), loop) for loop in _loops(trace)]
    found = [(times, loop) for times, loop in found if any(times)]
    if not found:
        return None
    (loop_ns, backward_ns), loop = max(found, key=lambda pair: (sum(pair[0]), pair[1].elements))
    backward = f"; its backward pass takes {units.duration(backward_ns)}" if backward_ns else ""
    return Finding(
        "A Python loop goes through a tensor element by element",
        f"The line takes {units.number(loop.elements)} elements of a tensor {list(loop.shape)} one after the other; "
        f"the loop takes {units.duration(loop_ns)} of {units.duration(recorded_ns(trace))}{backward}.",
        _FIX,
        attribution(trace).lines[loop.line],
        at_most_ns=min(loop_ns + backward_ns, recorded_ns(trace)),
    )


def _loop_ns(trace: Trace, loop: _Loop) -> tuple[int, int]:
    """The time of the passes of a loop, and, outside of them, of the backward pass of their ops.

    The time after the last element is that of an average one. Iteration over a tensor takes all elements before the
    first pass: then the time is that of the lines of the loop, with the backward pass of their ops.
    """
    parent = int(nesting(trace).parent[loop.first[0]])
    if parent >= 0 and trace.names[trace.name[parent]] == "aten::unbind":
        lines = lines_of_loop(trace, attribution(trace).lines[loop.line])
        return min(time_with_callees(trace, lines), recorded_ns(trace)), 0
    passed = trace.start_ns[loop.last] - trace.start_ns[loop.first]
    ends = trace.start_ns[loop.last] + passed // (loop.elements - 1)
    inside = covered(trace.start_ns[loop.first], ends, trace.start_ns)
    backward = (trace.phase == BACKWARD) & (trace.forward >= 0) & inside[trace.forward] & ~inside
    loop_ns = min(covered_length(trace.start_ns[loop.first], ends), recorded_ns(trace))
    return loop_ns, spent_ns(trace, backward)


def _loops(trace: Trace) -> list[_Loop]:
    """The loops that take consecutive elements of a tensor, by line, dimension and shape."""
    if trace.values is None or trace.shape is None:
        return []
    chosen = counted_ops(trace) & trace.where_name("aten::select".__eq__) & np.isin(trace.phase, (FORWARD, OTHER))
    chosen &= ~during(trace, loader_calls(trace)) & (attribution(trace).line >= 0)
    taken: dict[tuple[int, int, tuple[Any, ...]], list[tuple[int, int]]] = defaultdict(list)
    rows = np.flatnonzero(chosen)
    index_of = {values: _index(trace, values) for values in set(trace.values[rows].tolist())}
    columns = rows, attribution(trace).line[rows], trace.values[rows], trace.shape[rows]
    for event, line, values, shape in zip(*(column.tolist() for column in columns), strict=True):
        index, inputs = index_of[values], trace.shapes[shape] if shape >= 0 else ()
        if index is not None and inputs:
            taken[line, index[0], tuple(inputs[0])].append((index[1], event))
    found = [_loop(line, shape, np.array(pairs)) for (line, _, shape), pairs in taken.items()]
    return [loop for loop in found if loop is not None]


def _index(trace: Trace, values: int) -> tuple[int, int] | None:
    """The dimension and the index that `select` was given with these values."""
    if values < 0:
        return None
    match json.loads(trace.value_texts[values]):
        case [[_, int(dimension), int(index)], _]:
            return dimension, index
    return None


def _loop(line: int, shape: tuple[Any, ...], pairs: Int64) -> _Loop | None:
    """The stretches of 32 or more in which each index is one more than the one before, or one less."""
    steps = np.diff(pairs[:, 0])
    stretches = np.concatenate([_stretches(steps == 1), _stretches(steps == -1)])
    stretches = stretches[np.argsort(stretches[:, 0])]
    lengths = stretches[:, 1] - stretches[:, 0] + 1
    stretches = stretches[lengths >= _LEAST_ELEMENTS]
    if not len(stretches):
        return None
    return _Loop(line, shape, int(lengths.max()), pairs[stretches[:, 0], 1], pairs[stretches[:, 1], 1])


def _stretches(chosen: Bool) -> Int64:
    """First and last position of each run of steps that are chosen."""
    ends: Int64 = np.flatnonzero(np.diff(np.concatenate(([False], chosen, [False])).astype(np.int8)))
    return ends.reshape(-1, 2)
