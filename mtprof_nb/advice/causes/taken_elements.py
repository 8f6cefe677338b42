"""Elements that the Python code of a program takes of tensors by an index, to read or to write them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtprof_nb.analysis.costs import counted_ops
from mtprof_nb.analysis.groups import number_combinations
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.nesting import nesting
from mtprof_nb.analysis.program_time.data_loading import during, loader_calls
from mtprof_nb.model.trace import FORWARD, OTHER, Bool, Int64, Trace

SELECT, _SLICE = "aten::select", "aten::slice"
_WRITES = ("aten::copy_", "aten::fill_", "aten::zero_")
#: So many views of a view are followed to the op that writes.
_MOST_VIEWS = 4
_NO_DIMENSION = 1 << 20


@dataclass(frozen=True, eq=False)
class TakenElements:
    """Columns with an entry for each element that an op took. For a slice there is an entry of its last element."""

    event: Int64
    #: A number for thread, dimension and shape of the tensor.
    tensor: Int64
    index: Int64
    is_slice: Bool
    is_written: Bool

    @property
    def is_fed(self) -> Bool:
        """Whether the element was written right after its neighbour was read.

        A loop does so if each pass needs the result of the one before, as `out[t + 1] = f(out[t])`.
        """
        is_fed = np.zeros(len(self.event), np.bool_)
        order = np.argsort(self.tensor, kind="stable")
        index, written = self.index[order], self.is_written[order]
        is_alike = np.diff(self.tensor[order]) == 0
        is_fed[order[1:]] = is_alike & written[1:] & ~written[:-1] & (np.abs(np.diff(index)) == 1)
        return is_fed


def taken_elements(trace: Trace) -> TakenElements | None:
    """All elements that Python code took, also in a custom `backward`; None without shapes and values of inputs."""
    if trace.values is None or trace.shape is None:
        return None
    line, parent = attribution(trace).line, nesting(trace).parent
    # A `backward` that the user wrote runs lines of its own.
    is_python = np.isin(trace.phase, (FORWARD, OTHER)) | ((parent >= 0) & (line != line[parent]))
    chosen = counted_ops(trace) & trace.where_name((SELECT, _SLICE).__contains__) & is_python & (line >= 0)
    rows = np.flatnonzero(chosen & (trace.values >= 0) & (trace.shape >= 0) & ~during(trace, loader_calls(trace)))
    values, position = np.unique(trace.values[rows], return_inverse=True)
    read = [_index(trace.value_texts[one]) for one in values.tolist()]
    is_known = np.array([one is not None for one in read], np.bool_)[position]
    rows = rows[is_known]
    dimension, index = np.array([one or (0, 0) for one in read], np.int64).reshape(-1, 2)[position[is_known]].T
    is_slice = trace.where_name(_SLICE.__eq__)[rows]
    shape, numbers = _first_shapes(trace)
    left = _shapes_left(numbers, shape[rows], np.where(is_slice, _NO_DIMENSION, dimension))
    return TakenElements(
        rows,
        number_combinations([trace.track[rows], dimension, shape[rows]])[0],
        index,
        is_slice,
        _are_written(trace, rows, shape, left),
    )


def _index(text: str) -> tuple[int, int] | None:
    """The dimension and the index that `select` was given, or the last index that `slice` was given."""
    match json.loads(text):
        case [[_, int(dimension), int(index)], _]:
            return dimension, index
        case [[_, int(dimension), _, int(end), _], _]:
            return dimension, end - 1
    return None


def _first_shapes(trace: Trace) -> tuple[Int64, dict[Any, int]]:
    """For each event a number for the shape of its first input, -1 without one; and the number of each shape."""
    numbers: dict[Any, int] = {}
    table = [numbers.setdefault(tuple(inputs[0]), len(numbers)) if inputs else -1 for inputs in trace.shapes]
    return np.array([*table, -1], np.int64)[trace.shape], numbers


def _shapes_left(numbers: dict[Any, int], shape: Int64, dimension: Int64) -> Int64:
    """The number of each shape without one dimension: -1 for a shape that no input has, -2 without a dimension."""
    pair, first, _ = number_combinations([shape, dimension])
    shapes, left = list(numbers), []
    for number, without in zip(shape[first].tolist(), dimension[first].tolist(), strict=True):
        sizes = list(shapes[number]) if number >= 0 else []
        if without == _NO_DIMENSION:
            left.append(-2)
        elif -len(sizes) <= without < len(sizes):
            del sizes[without]
            left.append(numbers.get(tuple(sizes), -1))
        else:
            left.append(-1)
    return np.array(left, np.int64)[pair]


def _are_written(trace: Trace, rows: Int64, shape: Int64, left: Int64) -> Bool:
    """Which of these views the next op of the thread writes, directly or through a view of it.

    `left` has the shape of each view.
    """
    after = _ops_after(trace, rows)
    fits = (after >= 0) & ((left == -2) | ((left >= 0) & (shape[after] == left)))
    written: Bool = fits & trace.where_name(_WRITES.__contains__)[after]
    position = np.full(len(trace), -1, np.int64)
    position[rows] = np.arange(len(rows))
    view = position[after]
    for _ in range(_MOST_VIEWS):
        written |= fits & (view >= 0) & written[view]
    return written


def _ops_after(trace: Trace, rows: Int64) -> Int64:
    """For each of these ops the first op of its thread that begins after its end; -1 without one."""
    next_op, is_op = np.full(len(rows), -1, np.int64), counted_ops(trace)
    for track in set(trace.track[rows].tolist()):
        ops, own = np.flatnonzero(is_op & (trace.track == track)), np.flatnonzero(trace.track[rows] == track)
        after = np.searchsorted(trace.start_ns[ops], trace.end_ns[rows[own]])
        after = np.maximum(after, np.searchsorted(ops, rows[own]) + 1)  # an op may take no time
        next_op[own] = np.append(ops, -1)[after]
    return next_op
