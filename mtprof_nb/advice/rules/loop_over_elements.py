"""Python loops that take one element of a tensor after the other."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import numpy as np

from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.causes.data_loading import during, loader_calls
from mtprof_nb.analysis.causes.gaps import gaps_before
from mtprof_nb.analysis.causes.recorded_time import line_times, recorded_ns
from mtprof_nb.analysis.costs import counted_ops, op_costs
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.lines.line_costs import line_costs
from mtprof_nb.model.trace import FORWARD, OTHER, Bool, Trace

_LEAST_ELEMENTS = 32
_FIX = """\
# if an element does not need the result of the one before: one op on the whole tensor
y = f(x)  # instead of: for i in range(len(x)): y[i] = f(x[i])"""


@rule
def loop_over_elements(trace: Trace) -> Finding | None:
    """Find the dearest line that indexes a tensor with 0, 1, 2, … one after the other; needs shapes."""
    times = line_times(trace)
    loops = {line: runs for line, runs in _indices(trace).items() if runs}
    line = max(loops, key=lambda one: times.get(attribution(trace).lines[one], 0), default=None)
    if line is None:
        return None
    where, (elements, shape) = attribution(trace).lines[line], max(loops[line])
    costs, ns = line_costs(trace), max(times.get(where, 0), _with_gaps(trace, line))
    backward_ns = int(costs.backward_ns[line])
    backward = f", of which {units.duration(backward_ns)} in its backward pass" if backward_ns else ""
    return Finding(
        "A Python loop goes through a tensor element by element",
        f"The line takes {units.number(elements)} elements of a tensor {list(shape)} one after the other, with "
        f"{units.plural(int(costs.count[line]), 'op')} in {units.duration(ns)} of "
        f"{units.duration(recorded_ns(trace))}{backward}.",
        _FIX,
        where,
        at_most_ns=ns,
    )


def _with_gaps(trace: Trace, line: int) -> int:
    """The time of a line's ops, and of the gaps before them."""
    rows = counted_ops(trace) & (attribution(trace).line == line)
    return int((op_costs(trace).self_ns + gaps_before(trace))[rows].sum())


def _indices(trace: Trace) -> dict[int, list[tuple[int, tuple[Any, ...]]]]:
    """For each line the number of elements, and the shape, of each tensor of which it takes consecutive elements."""
    if trace.values is None or trace.shape is None:
        return {}
    chosen = counted_ops(trace) & trace.where_name("aten::select".__eq__) & np.isin(trace.phase, (FORWARD, OTHER))
    chosen &= ~during(trace, loader_calls(trace)) & (attribution(trace).line >= 0)
    taken: dict[tuple[int, int, tuple[Any, ...]], list[int]] = defaultdict(list)
    rows = np.flatnonzero(chosen)
    index_of = {values: _index(trace, values) for values in set(trace.values[rows].tolist())}
    columns = attribution(trace).line[rows], trace.values[rows], trace.shape[rows]
    for line, values, shape in zip(*(column.tolist() for column in columns), strict=True):
        index, inputs = index_of[values], trace.shapes[shape] if shape >= 0 else ()
        if index is not None and inputs:
            taken[line, index[0], tuple(inputs[0])].append(index[1])
    found: dict[int, list[tuple[int, tuple[Any, ...]]]] = defaultdict(list)
    for (line, _, shape), indices in taken.items():
        if (length := _longest_run(indices)) >= _LEAST_ELEMENTS:
            found[line].append((length, shape))
    return found


def _index(trace: Trace, values: int) -> tuple[int, int] | None:
    """The dimension and the index that `select` was given with these values."""
    if values < 0:
        return None
    match json.loads(trace.value_texts[values]):
        case [[_, int(dimension), int(index)], _]:
            return dimension, index
    return None


def _longest_run(indices: list[int]) -> int:
    """The length of the longest stretch in which each index is one more than the one before, or one less."""
    steps = np.diff(indices)
    return max(_longest(steps == 1), _longest(steps == -1)) + 1


def _longest(chosen: Bool) -> int:
    ends = np.flatnonzero(np.diff(np.concatenate(([False], chosen, [False])).astype(np.int8)))
    return int((ends[1::2] - ends[::2]).max(initial=0))
