"""Tensors that grow by `cat`, so that each step copies all that is there."""

from __future__ import annotations

from collections import defaultdict
from math import prod
from typing import Any

import numpy as np

from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.costs import counted_ops
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.memory.allocation_pairs import releases_of
from mtprof_nb.analysis.nesting import is_among
from mtprof_nb.analysis.program_time.recorded_time import line_of_longest, of_recorded
from mtprof_nb.analysis.program_time.spent_time import saved_ns, spent_ns, with_backward
from mtprof_nb.model.trace import FORWARD, OTHER, Bool, Int64, Trace

_LEAST_CALLS = 16
#: So many tensors grow in turns at most, as two in each layer of a model.
_LONGEST_PERIOD = 256
#: A file may state shapes that no tensor has.
_MOST_ELEMENTS = 2**60
_FIX = """\
parts.append(row)  # in the loop, instead of whole = torch.cat([whole, row])
whole = torch.cat(parts)  # once, after the loop
# if each pass needs the whole: make it once, as large as it gets, and write into it: whole[count] = row"""


@rule
def grows_by_cat(trace: Trace) -> Finding | None:
    """Find calls of `cat` on one line, each with a first tensor as large as an earlier result; needs shapes."""
    growing = _growing(trace)
    if not growing:
        return None
    inside = with_backward(trace, is_among(trace, growing))
    ns = spent_ns(trace, inside)
    return Finding(
        "A tensor grows by cat, which copies the whole of it each time",
        f"{units.plural(len(growing), 'call')} of cat, each with a tensor as large as an earlier result, take "
        f"{of_recorded(trace, ns)}, backward passes included.",
        _FIX,
        line_of_longest(trace, np.array(growing, np.int64)),
        found_ns=ns,
        at_most_ns=saved_ns(trace, inside),
    )


def _growing(trace: Trace) -> list[int]:
    """The calls of `cat` that let a tensor grow, of all lines."""
    if trace.shape is None:
        return []
    cats = counted_ops(trace) & trace.where_name("aten::cat".__eq__) & np.isin(trace.phase, (FORWARD, OTHER))
    rows = np.flatnonzero(cats & (trace.shape >= 0))
    of_line: dict[tuple[int, int], list[tuple[int, ...]]] = defaultdict(list)
    sizes_of = {shape: _sizes(trace.shapes[shape]) for shape in set(trace.shape[rows].tolist())}
    times = trace.start_ns[rows], _released_ns(trace)[rows]
    columns = attribution(trace).line[rows], trace.track[rows], trace.shape[rows], rows, *times
    for line, track, shape, *call in zip(*(column.tolist() for column in columns), strict=True):
        of_line[line, track].append((*call, *sizes_of[shape]))
    return sorted(event for calls in of_line.values() for event in _growing_in_turns(np.array(calls)))


def _growing_in_turns(calls: Int64) -> list[int]:
    """The calls whose first tensor is as large as the result of the call `period` calls before, 16 times or more.

    A line may let several tensors grow in turns, as the keys and the values of a cache; one period serves all of them.
    A result that was released before is not the first tensor.
    """
    event, start_ns, released_ns, first, added = calls.T
    is_growth, result = (added > 0) & (first > added), first + added
    for period in range(1, min(len(calls) // _LEAST_CALLS, _LONGEST_PERIOD) + 1):
        follows = is_growth[period:] & (first[period:] == result[:-period])
        follows &= start_ns[period:] < released_ns[:-period]
        growing = period + np.flatnonzero(_long_runs(follows, period))
        if len(growing):
            return [int(one) for one in event[growing]]
    return []


def _long_runs(follows: Bool, period: int) -> Bool:
    """Where `follows` is true 16 times or more in a row, from one period to the next."""
    begins, in_run = follows, np.zeros(len(follows), np.bool_)
    for calls in (1, 2, 4, 8):  # so many in a row, and as many after them
        begins = begins[: -calls * period] & begins[calls * period :]
        if not begins.any():
            return in_run
    for call in range(_LEAST_CALLS):
        in_run[call * period : call * period + len(begins)] |= begins
    return in_run


def _released_ns(trace: Trace) -> Int64:
    """When the memory that each event allocated was released; the largest integer if it was not, or is not known."""
    never, released = np.iinfo(np.int64).max, np.full(len(trace), -1, np.int64)
    if trace.allocations is not None:
        records, release = trace.allocations, releases_of(trace, trace.allocations)
        rows = np.flatnonzero((records.nbytes > 0) & (records.event >= 0))
        ends = np.where(release[rows] >= 0, records.time_ns[release[rows]], never)
        np.maximum.at(released, records.event[rows], ends)
    return np.where(released >= 0, released, never)


def _sizes(shapes: Any) -> tuple[int, int]:
    """The elements of the first tensor in the list that is the first input, and of the others; 0 if not known."""
    parts = shapes[0] if shapes else ()
    if not parts or not all(isinstance(part, tuple) for part in parts):
        return 0, 0
    first, *others = (min(prod(part), _MOST_ELEMENTS) for part in parts)
    return first, min(sum(others), _MOST_ELEMENTS)
