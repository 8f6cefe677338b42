"""Columns of many events at once: the keys of `fields` that any of them has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mtprof_nb.analysis import fields
from mtprof_nb.model.trace import KINDS, OP, PHASES, Bool, Int64, StackTree, Trace

Column = npt.NDArray[Any]


def event_columns(trace: Trace, positions: Int64) -> dict[str, Column]:
    """The values of each recorded key for the events at `positions`.

    A text that an event lacks is None, a number is masked.
    """
    thread = np.array([track.native_id for track in trace.tracks] or [0], np.int64)[trace.track[positions]]
    is_op = trace.kind[positions] == OP
    always = {
        "name": _entries(trace.names, trace.name[positions]),
        "kind": _entries(KINDS, trace.kind[positions]),
        "device_type": _entries(trace.devices, trace.device[positions]),
        "start_ns": trace.start_ns[positions],
        "end_ns": trace.end_ns[positions],
        "duration_ns": trace.duration_ns[positions],
        "step": trace.step[positions],
        "thread_id": thread,
        "phase": _entries(PHASES, trace.phase[positions]),
        "correlation_id": _where(is_op, trace.correlation_id[positions]),
        "runtime_name": _entries(["dispatch_kernel"], np.where(is_op, 0, -1)),
        "runtime_tid": _where(is_op, thread),
    }
    return {**always, **_recorded(trace, positions)}


def _recorded(trace: Trace, positions: Int64) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    sequence = trace.sequence_nr[positions]
    if (sequence >= 0).any():
        columns["sequence_nr"] = _where(sequence >= 0, sequence)
    if trace.shape is not None:
        texts = [fields.nested_list(shape) for shape in trace.shapes]
        columns["input_shapes"] = _entries(texts, trace.shape[positions], [])
    if trace.stack is not None and trace.stacks is not None:
        columns["stack"] = _stacks(trace.stacks, trace.stack[positions])
    if trace.stack_is_forward is not None and (is_forward := trace.stack_is_forward[positions]).any():
        columns["stack_origin"] = _entries(["forward"], np.where(is_forward, 0, -1))
    if trace.flops is not None:
        columns["flops"] = _where(trace.flops[positions] >= 0, trace.flops[positions])
    if trace.module is not None:
        columns["module"] = _entries(trace.modules, trace.module[positions])
    return {**columns, **_memory(trace, positions)}


def _memory(trace: Trace, positions: Int64) -> dict[str, Column]:
    """Bytes around ops, in columns of each device."""
    if trace.memory_before is None or trace.memory_after is None:
        return {}
    before, after = trace.memory_before[positions], trace.memory_after[positions]
    columns = {}
    for device, name in enumerate(trace.devices):
        known = (trace.device[positions] == device) & (before >= 0)
        if known.any():
            prefix = f"{name.lower()}_memory_allocated"
            columns[f"{prefix}_before"] = _where(known, before)
            columns[f"{prefix}_after"] = _where(known, after)
            columns[f"{prefix}_delta"] = _where(known, after - before)
    return columns


def _stacks(stacks: StackTree, stack: Column) -> Column:
    distinct, position = np.unique(stack, return_inverse=True)
    texts = [[str(frame) for frame in stacks.stack(number)] for number in distinct.tolist()]
    return _entries(texts, position.ravel())


def _entries(table: Sequence[Any], column: Column, absent: Any = None) -> Column:
    """The entries of a table that a column points to."""
    entries = np.empty(len(table) + 1, object)
    entries[:-1] = np.fromiter(table, object, len(table))
    entries[-1] = absent
    return entries[column]


def _where(known: Bool, values: Column) -> Column:
    """The values as they are if all are known, and else with the others masked."""
    return values if known.all() else np.ma.masked_array(values, ~known)
