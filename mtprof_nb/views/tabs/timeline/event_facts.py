"""Facts about events that a chart shows on hover: name, times, phase, step, op, input shapes, source location."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from mtprof_nb.analysis.costs import op_costs
from mtprof_nb.analysis.devices.kernel_owners import kernel_owners
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.nesting import nesting
from mtprof_nb.analysis.shape_texts import shapes_and_types_text
from mtprof_nb.model.source_files import source_location
from mtprof_nb.model.trace import PYTHON, Int64, Trace
from mtprof_nb.views.escaped_text import shown
from mtprof_nb.views.scene import Answer


def event_facts(trace: Trace, events: Int64) -> Answer:
    """Columns of facts, one entry an event; -1 where a fact is not known. `texts_of` has the texts of the numbers."""
    shape = np.full(len(events), -1, np.int32) if trace.shape is None else trace.shape[events]
    owner = np.where(trace.is_device_work[events], kernel_owners(trace)[events], -1)
    columns: dict[str, npt.NDArray[Any]] = {
        "event": events,
        "name": trace.name[events],
        "took_ns": trace.duration_ns[events],
        "self_ns": _self_ns(trace, events),
        "phase": trace.phase[events],
        "step": trace.step[events],
        # The name of the op that a kernel belongs to.
        "op": np.where(owner >= 0, trace.name[owner], -1) if len(trace) else owner,
        "shape": shape,
        "line": attribution(trace).line[events],
    }
    return {key: column.tolist() for key, column in columns.items()}


def texts_of(trace: Trace, names: Iterable[int], shapes: Iterable[int], lines: Iterable[int]) -> Answer:
    """Tables of the texts that facts point to, by their positions in the trace."""
    located = attribution(trace).lines
    return {
        "names": {name: shown(trace.names[name]) for name in sorted(set(names)) if name >= 0},
        "shapes": {shape: shown(_inputs(trace, shape)) for shape in sorted(set(shapes)) if shape >= 0},
        "lines": {line: shown(source_location(trace, *located[line])) for line in sorted(set(lines)) if line >= 0},
    }


def _self_ns(trace: Trace, events: Int64) -> Int64:
    """The time of each event without what it called; -1 for an event that is on no thread's stack.

    An op has the self time of the tables, which includes Python functions that it called.
    """
    nested, costs = nesting(trace), op_costs(trace)
    in_tables = costs.counted[events] & (trace.kind[events] != PYTHON)
    own = np.where(in_tables, costs.self_ns[events], nested.self_ns[events])
    without: Int64 = np.where(nested.depth[events] < 0, -1, own)
    return without


def _inputs(trace: Trace, shape: int) -> str:
    return shapes_and_types_text(trace.shapes[shape], trace.dtypes[shape] if trace.dtypes else ())
