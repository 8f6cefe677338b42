"""Python loops that take one element of a tensor after the other."""

from __future__ import annotations

from heapq import nlargest
from typing import Any, NamedTuple

import numpy as np

from mtprof_nb.advice.causes.source_text import lines_of_loop
from mtprof_nb.advice.causes.taken_elements import SELECT, taken_elements
from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.costs import counted_ops, op_costs
from mtprof_nb.analysis.groups import number_combinations
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.nesting import nesting
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.analysis.program_time.gaps import gaps_before, outermost_ops
from mtprof_nb.analysis.program_time.recorded_time import caused_by, of_recorded, recorded_ns
from mtprof_nb.analysis.program_time.spent_time import ADDS_UP, saved_ns, spent_ns, with_backward, with_nested
from mtprof_nb.model.intervals import covered, covered_length, runs_of_equal
from mtprof_nb.model.trace import BACKWARD, OPTIMIZER, Bool, Int64, Trace

_LEAST_ELEMENTS = 32
#: Of an op that takes longer, one call on the whole tensor saves little. A loop of such ops is one over batches.
_LARGE_OP_NS = 200_000
_MOST_LARGE = 0.5
#: Results of a pass, with their autograd nodes, are released in this part of its time at most.
_RELEASED = 4
#: So many loops, the longest, are looked at closely.
_LOOKED_AT = 5
_ITERATES = "aten::unbind"
#: Ops that make one tensor of the results of all passes.
_COLLECTORS = ("aten::stack", "aten::cat")
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
    times = []
    for loop_ns, loop in _longest(trace):
        inside = _inside(trace, loop)
        if not _is_over_batches(trace, loop, inside, loop_ns):
            after = _after(trace, loop, inside)
            at_most_ns = saved_ns(trace, after, _with_releases(trace, loop))
            program_ns = _without_marks(trace, loop, inside, loop_ns)
            times.append((at_most_ns, int(loop.elements.max()), program_ns, spent_ns(trace, after), loop))
    if not times:
        return None
    at_most_ns, elements, loop_ns, after_ns, loop = max(times, key=lambda one: one[:2])
    # The time after the last element may have ops of other lines, and a backward pass of these.
    backward = f"; its backward pass takes {units.duration(after_ns)}" if 20 * after_ns >= loop_ns else ""
    return Finding(
        "A Python loop goes through a tensor element by element",
        f"The line takes {units.number(elements)} elements of a tensor {list(loop.shape)} one after "
        f"the other; the loop takes {of_recorded(trace, loop_ns)}{backward}.",
        _FIX,
        attribution(trace).lines[loop.line],
        found_ns=loop_ns + after_ns,
        at_most_ns=at_most_ns,
    )


def _longest(trace: Trace) -> list[tuple[int, _Loop]]:
    """The few loops that take longest, with the time of each."""
    timed = [(covered_length(*_passed(trace, loop)), loop) for loop in _loops(trace)]
    longest = nlargest(_LOOKED_AT, timed, key=lambda pair: (pair[0], pair[1].elements.max()))
    return [(ns, loop) for ns, loop in longest if ns]


def _is_iteration(trace: Trace, loop: _Loop) -> bool:
    parent = int(nesting(trace).parent[loop.first[0]])
    return parent >= 0 and trace.names[trace.name[parent]] == _ITERATES


@once_a_trace
def _of_iteration(trace: Trace, line: int) -> Bool:
    """The events that the lines of the loop on this line caused, without their backward pass."""
    caused = attribution(trace)
    is_repeated = (trace.forward >= 0) & (caused.line == caused.line[trace.forward])
    is_repeated |= with_nested(trace, trace.where_name(lambda name: ADDS_UP in name))
    is_inside: Bool = caused_by(trace, lines_of_loop(trace, caused.lines[line])) & ~is_repeated
    return is_inside


def _passed(trace: Trace, loop: _Loop) -> tuple[Int64, Int64]:
    """Start and end of each pass through the elements. The last element counts with the time of an average one.

    Iteration over a tensor takes all elements before the first pass. It ends with the last op of the loop's lines.
    """
    if not _is_iteration(trace, loop):
        starts, lasts = trace.start_ns[loop.first], trace.start_ns[loop.last]
        return starts, lasts + (lasts - starts) // (loop.elements - 1)
    taking, line = nesting(trace).parent[loop.first], attribution(trace).lines[loop.line]
    body, starts = lines_of_loop(trace, line) - {line} or {line}, trace.start_ns[taking]
    # Functions that the first line of the loop calls come before it: a pass ends before those of the next one.
    rows = np.flatnonzero(_of_iteration(trace, loop.line) & caused_by(trace, body))
    until = np.append(starts[1:], trace.ended_ns)
    reached = np.maximum.accumulate(np.append(0, trace.end_ns[rows]))[np.searchsorted(trace.start_ns[rows], until)]
    return starts, np.maximum(reached, trace.end_ns[taking] if len(rows) else starts)


def _with_releases(trace: Trace, loop: _Loop) -> tuple[Int64, Int64]:
    """The passes, each with the time before it in which results of the previous pass may have been released."""
    starts, ends = _passed(trace, loop)
    first = nesting(trace).parent[loop.first] if _is_iteration(trace, loop) else loop.first
    return starts - np.minimum(gaps_before(trace)[first], (ends - starts) // _RELEASED), ends


def _inside(trace: Trace, loop: _Loop) -> Bool:
    """The events that the lines of the loop caused; if its lines are not known, all that ran meanwhile."""
    if _is_iteration(trace, loop):
        return _of_iteration(trace, loop.line)
    return covered(*_passed(trace, loop), trace.start_ns)


def _without_marks(trace: Trace, loop: _Loop, inside: Bool, loop_ns: int) -> int:
    """The program's own time in a loop: without the marks of its lines. Marks of lines without ops are not known."""
    caused = attribution(trace)
    lines = {caused.lines[line] for line in {loop.line, *caused.line[inside].tolist()} if line >= 0}
    marks_ns = sum(times.profiler_ns for line, times in (trace.outside or {}).items() if line in lines)
    return min(max(loop_ns - marks_ns, 0), recorded_ns(trace))


def _is_over_batches(trace: Trace, loop: _Loop, inside: Bool, loop_ns: int) -> bool:
    if not _is_iteration(trace, loop):  # the last pass may have ops of the lines after it
        inside = covered(trace.start_ns[loop.first], trace.start_ns[loop.last], trace.start_ns)
    return bool(np.any(inside & (trace.phase == OPTIMIZER))) or _large_ops_ns(trace, inside) > _MOST_LARGE * loop_ns


def _after(trace: Trace, loop: _Loop, inside: Bool) -> Bool:
    """The ops that put the results of the loop together, and the backward pass of all."""
    collects, elements = trace.where_name(_COLLECTORS.__contains__), int(loop.elements.max())
    if trace.shape is not None:
        parts = [len(inputs[0]) if inputs else 0 for inputs in trace.shapes]
        collects &= np.array([*parts, 0], np.int64)[trace.shape] >= elements
    return with_backward(trace, inside | (collects & counted_ops(trace))) & ~inside


def _large_ops_ns(trace: Trace, inside: Bool) -> int:
    """The time in which large ops ran, by the median of the ops of one name, without the backward pass."""
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
    line, loops = attribution(trace).line[taken.event], []
    selected = np.flatnonzero(~taken.is_slice)
    for run in runs_of_equal(number_combinations([line[selected], taken.tensor[selected]])[0]):
        rows = selected[run]
        first = rows[0]
        shape = trace.shapes[trace.shape[taken.event[first]]][0]
        loop = _loop(int(line[first]), shape, np.stack([taken.index[rows], taken.event[rows]], axis=1))
        if loop is not None and 2 * fed[taken.tensor[first]] < loop.elements.max():
            loops.append(loop)
    return loops


def _loop(line: int, shape: tuple[Any, ...], pairs: Int64) -> _Loop | None:
    """The passes in which the index only rises or only falls, by steps of one; None if none has 32 elements.

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
