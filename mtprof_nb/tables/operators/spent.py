"""Calls, times and allocated bytes of each row of the operators table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtprof_nb.analysis.costs import op_costs
from mtprof_nb.analysis.groups import Groups, sums
from mtprof_nb.analysis.memory.memory_curve import allocated_bytes
from mtprof_nb.analysis.nesting import nest, nesting
from mtprof_nb.model.trace import OP, SCOPE, Int32, Int64, Trace
from mtprof_nb.tables.operators.operator_table import paths_above


@dataclass(frozen=True, eq=False)
class Spent:
    """Calls, self time and total time of each group."""

    count: Int64
    self_ns: Int64
    total_ns: Int64


def spent_by(trace: Trace, grouping: str, groups: Groups) -> Spent:
    """Calls, self time and total time of each group of one of the table's groupings."""
    if grouping in ("scope", "region"):
        return _outermost(trace, groups)
    if grouping not in ("module", "thread"):
        return Spent(groups.count, groups.self_ns, groups.total_ns)
    rows = np.flatnonzero((trace.kind == OP) & (groups.of_event >= 0))
    own = _sums(groups, rows, op_costs(trace).self_ns)
    total = _with_submodules(trace, groups, own) if grouping == "module" else own
    return Spent(np.bincount(groups.of_event[rows], minlength=len(groups)), own, total)


def _outermost(trace: Trace, groups: Groups) -> Spent:
    """Count only the outermost of nested events of a group. Python frames are ignored, recorded or not."""
    runs = op_costs(trace).counted & np.isin(trace.kind, (OP, SCOPE)) & ~trace.is_async
    nested = nest(trace, runs)
    inside = np.where(nested.parent >= 0, groups.of_event[nested.parent] == groups.of_event, False)
    entering = np.flatnonzero(runs & ~inside)
    count = np.bincount(groups.of_event[entering], minlength=len(groups))
    return Spent(count, _sums(groups, np.flatnonzero(runs), nested.self_ns), _sums(groups, entering, trace.duration_ns))


def _sums(groups: Groups, rows: Int64, values: Int64) -> Int64:
    return sums(groups.of_event[rows], values[rows], len(groups))


def _with_submodules(trace: Trace, groups: Groups, own: Int64) -> Int64:
    if trace.module is None:
        return own
    module = trace.module[groups.first].tolist()
    of_path = {trace.modules[number]: row for row, number in enumerate(module) if number >= 0}
    total = own.copy()
    for path, row in of_path.items():
        for above in paths_above(path):
            if above in of_path:
                total[of_path[above]] += own[row]
    return total


def allocated_by(trace: Trace, of_event: Int32, size: int, with_callees: bool) -> Int64 | None:
    """Bytes allocated in each group, `with_callees` also by its callees; recursion counts no byte twice.

    None without allocator records.
    """
    own = allocated_bytes(trace)
    if own is None:
        return None
    parent = nesting(trace).parent
    event = np.flatnonzero(own).astype(np.int32)
    at, pairs = event, []
    while len(at):
        grouped = of_event[at] >= 0
        pairs.append(event[grouped] * np.int64(size) + of_event[at[grouped]])
        above = parent[at] if with_callees else np.full(len(at), -1, np.int32)
        event, at = event[above >= 0], above[above >= 0]
    # The pairs of each level are in order: sorting them is many times faster than looking each up.
    ordered = np.sort(np.concatenate([np.empty(0, np.int64), *pairs]), kind="stable")
    distinct = ordered[np.diff(ordered, prepend=-1) > 0]
    return sums(distinct % size, own[distinct // size], size)
