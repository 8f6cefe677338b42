"""Category of each block of memory, as far as the recording proves it; the rest is unknown, never guessed.

The columns of a trace do not show which block is an input or a parameter: these are unknown.
"""

from __future__ import annotations

from collections import deque
from enum import IntEnum
from math import prod

import numpy as np

from mtprof_nb.analysis.memory.allocation_pairs import releases_of
from mtprof_nb.analysis.nesting import Nesting, is_among, nesting
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.device_facts import ELEMENT_BYTES
from mtprof_nb.model.trace import BACKWARD, ENGINE_PREFIX, OP, OPTIMIZER, Allocations, Bool, Int8, Int32, Int64, Trace


class Category(IntEnum):
    """Purpose of a block of memory, with the numbers of torch's memory timelines."""

    PARAMETER = 0
    OPTIMIZER_STATE = 1
    INPUT = 2
    TEMPORARY = 3
    ACTIVATION = 4
    GRADIENT = 5
    AUTOGRAD_DETAIL = 6
    UNKNOWN = 7


#: Names of autograd's event that keeps a gradient, and of the op that adds to one.
_ACCUMULATE = "torch::autograd::AccumulateGrad"
_ADD = "aten::add_"
#: Caching allocators of devices round sizes up to a multiple of this.
_DEVICE_BLOCK = 512


@once_a_trace
def categories(trace: Trace) -> Int8:
    """The `Category` of each allocation; a release has that of its block."""
    records = trace.allocations
    if records is None:
        return np.empty(0, np.int8)
    category = np.full(len(records), Category.UNKNOWN, np.int8)
    if not len(trace):
        return category
    release = releases_of(trace, records)
    nested = nesting(trace)
    is_block = (records.nbytes > 0) & (records.event >= 0)
    phase = np.where(records.event >= 0, trace.phase[records.event], -1)
    in_backward, in_optimizer = is_block & (phase == BACKWARD), is_block & (phase == OPTIMIZER)
    # Forward ops whose autograd node took part in a backward pass.
    made_nodes = is_among(trace, trace.forward)
    category[is_block & (_outermost(made_nodes, nested)[records.event] >= 0)] = Category.ACTIVATION
    # Released during the backward pass, so not a gradient that was kept.
    category[in_backward & (release >= 0) & (phase[release] == BACKWARD)] = Category.AUTOGRAD_DETAIL
    category[_gradients(trace, records, release, in_backward)] = Category.GRADIENT
    outlives = _outlives(trace, nested, records, release, trace.phase == OPTIMIZER)
    category[in_optimizer & outlives] = Category.OPTIMIZER_STATE
    outlives = _outlives(trace, nested, records, release, _is_ordinary_op(trace, nested))
    category[is_block & ~outlives] = Category.TEMPORARY
    ends = np.flatnonzero((records.nbytes < 0) & (release >= 0))
    category[ends] = category[release[ends]]
    return category


def _outermost(chosen: Bool, nested: Nesting) -> Int32:
    """For each event the outermost chosen one that contains it or is it, -1 for none."""
    outermost = np.where(chosen, np.arange(len(chosen), dtype=np.int32), np.int32(-1))
    for level in nested.levels()[1:]:
        above = outermost[nested.parent[level]]
        outermost[level] = np.where(above >= 0, above, outermost[level])
    return outermost


def _outlives(trace: Trace, nested: Nesting, records: Allocations, release: Int64, chosen: Bool) -> Bool:
    """Whether each block is held longer than the outermost chosen event that contains its allocation."""
    around = np.where(records.event >= 0, _outermost(chosen, nested)[records.event], -1)
    held_until = np.where(release >= 0, records.time_ns[release], np.iinfo(np.int64).max)
    outlives: Bool = (around < 0) | (held_until > trace.end_ns[around])
    return outlives


def _is_ordinary_op(trace: Trace, nested: Nesting) -> Bool:
    """Ops without autograd's own events: the engine's, and the nodes that it runs."""
    engine = trace.where_name(lambda name: name.startswith(ENGINE_PREFIX))
    node = (nested.parent >= 0) & engine[nested.parent]
    ordinary: Bool = (trace.kind == OP) & ~engine & ~node
    return ordinary


def _gradients(trace: Trace, records: Allocations, release: Int64, in_backward: Bool) -> Int64:
    """Blocks that a backward pass allocated and kept, of the size of a gradient that autograd then kept."""
    phase = np.where(records.event >= 0, trace.phase[records.event], -1)
    held = deque(np.flatnonzero(in_backward & ((release < 0) | (phase[release] != BACKWARD))).tolist())
    process = trace.processes_of(records.track)
    waiting: dict[tuple[int, int], list[int]] = {}
    gradients: list[int] = []
    for end_ns, keeper, nbytes in _kept_gradients(trace):
        while held and records.time_ns[held[0]] <= end_ns:
            row = held.popleft()
            waiting.setdefault((int(process[row]), int(records.nbytes[row])), []).append(row)
        rounded = -(-nbytes // _DEVICE_BLOCK) * _DEVICE_BLOCK
        last_made = waiting.get((keeper, nbytes)) or waiting.get((keeper, rounded))
        if last_made:
            gradients.append(last_made.pop())
    return np.array(gradients, np.int64)


def _kept_gradients(trace: Trace) -> list[tuple[int, int, int]]:
    """Moment, process and bytes of each gradient that autograd kept, in order; not those it added to one there."""
    if trace.shape is None or _ACCUMULATE not in trace.names:
        return []
    keeps = trace.name == trace.names.index(_ACCUMULATE)
    if _ADD in trace.names:
        parents = nesting(trace).parent[trace.name == trace.names.index(_ADD)]
        keeps[parents[parents >= 0]] = False
    rows = np.flatnonzero(keeps & (trace.shape >= 0))
    rows = rows[np.argsort(trace.end_ns[rows], kind="stable")]
    sizes = {shape: _bytes_of_first(trace, shape) for shape in set(trace.shape[rows].tolist())}
    columns = trace.end_ns[rows], trace.processes_of(trace.track[rows]), trace.shape[rows]
    moments = zip(*(column.tolist() for column in columns), strict=True)
    return [(end_ns, process, nbytes) for end_ns, process, shape in moments if (nbytes := sizes[shape]) > 0]


def _bytes_of_first(trace: Trace, shape: int) -> int:
    """Bytes of the first input, 0 where its type is not known."""
    shapes, dtypes = trace.shapes[shape], trace.dtypes[shape] if trace.dtypes else ()
    lengths = [length for length in shapes[0] if isinstance(length, int)] if shapes else []
    if not shapes or not dtypes or len(lengths) < len(shapes[0]):
        return 0
    return prod(lengths) * ELEMENT_BYTES.get(dtypes[0], 0)
