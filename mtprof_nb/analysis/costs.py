"""Costs of each event, self and total: host time, device time, memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mtprof_nb.analysis.devices.kernel_owners import kernel_owners
from mtprof_nb.analysis.memory.missing_memory import lacks_memory
from mtprof_nb.analysis.nesting import Nesting, nest, nesting
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.bookkeeping import is_bookkeeping
from mtprof_nb.model.intervals import runs_of_equal
from mtprof_nb.model.trace import DEVICE_SCOPE, OP, PYTHON, RUNTIME, STEP_PREFIX, Allocations, Bool, Int32, Int64, Trace


def averaged_name(name: str) -> str:
    """The name under which an event is averaged: all profiler steps share one."""
    return "ProfilerStep*" if name.startswith(STEP_PREFIX) else name


@dataclass(frozen=True, eq=False)
class Bytes:
    """Bytes allocated minus bytes released during each event, total and self."""

    cpu: Int64
    self_cpu: Int64
    device: Int64
    self_device: Int64


@dataclass(frozen=True, eq=False)
class Costs:
    """The costs of each event of a trace. Of events that do not nest, only kernels have a self cost."""

    #: Which events count; the others are bookkeeping, or folded into their parent.
    counted: Bool
    #: The counted event that each ran in, or -1.
    parent: Int32
    total_ns: Int64
    #: Never negative, even where children overlap.
    self_ns: Int64
    #: None where no kernel was recorded.
    device_ns: Int64 | None
    self_device_ns: Int64 | None
    #: None where no memory was recorded.
    memory: Bytes | None


@once_a_trace
def event_costs(trace: Trace) -> Costs:
    """The costs of all events, none folded or left out."""
    everything = np.ones(len(trace), np.bool_)
    return _costs(trace, everything, nesting(trace), np.arange(len(trace), dtype=np.int32), kernel_owners(trace))


@once_a_trace
def averaged_costs(trace: Trace) -> Costs:
    """The costs of the events that averages count: without bookkeeping, and without only children of a namesake.

    As in torch's rows, the self time of an op excludes recorded Python functions that it called, and a kernel for
    which the runtime names no op counts for none.
    """
    nested, keeper = _averaged(trace)
    return _costs(trace, _is_kept(trace, keeper), nested, keeper, trace.launcher)


@once_a_trace
def op_costs(trace: Trace) -> Costs:
    """The costs of the events that averages count, whether or not Python functions and runtime calls were recorded.

    Python code that an op calls, such as a custom `backward`, counts for the op; a Python function costs nothing. So do
    calls of a device's runtime, such as launches. A kernel without an op of its own counts for its owner: a region of
    torch.compile, the launch of a graph, a scope.
    """
    nested, keeper = _averaged(trace)
    inside = (trace.kind == PYTHON) | _calls_of_ops(trace)
    if inside.any():
        on_host = ~trace.on_device & ~inside & ~trace.is_async
        nested = nest(trace, on_host & ~is_bookkeeping(trace))
    elif trace.launcher is None or np.array_equal(kernel_owners(trace), trace.launcher):
        return averaged_costs(trace)
    return _costs(trace, _is_kept(trace, keeper), nested, keeper, kernel_owners(trace))


def _calls_of_ops(trace: Trace) -> Bool:
    """The calls of a runtime that ops made."""
    calls: Bool = trace.kind == RUNTIME
    if not calls.any():
        return calls
    nested, in_op = nesting(trace), np.zeros(len(trace), np.bool_)
    for level in nested.levels()[1:]:
        parent = nested.parent[level]
        in_op[level] = in_op[parent] | (trace.kind[parent] == OP)
    made: Bool = calls & in_op
    return made


@once_a_trace
def _averaged(trace: Trace) -> tuple[Nesting, Int32]:
    """The nesting of the events that averages count, and the event that each is folded into."""
    counted = ~is_bookkeeping(trace)
    on_host = ~trace.on_device & ~trace.is_async
    nested = nesting(trace) if counted.all() else nest(trace, counted & on_host)
    return nested, _keepers(trace, nested)


def _is_kept(trace: Trace, keeper: Int32) -> Bool:
    kept: Bool = ~is_bookkeeping(trace) & (keeper == np.arange(len(trace)))
    return kept


def counted_ops(trace: Trace) -> Bool:
    """The ops that every table, line and figure counts: no bookkeeping, and no only child of a namesake."""
    counted: Bool = averaged_costs(trace).counted & (trace.kind == OP)
    return counted


def in_ops_ns(trace: Trace) -> int:
    """The self time of all counted ops; simultaneous ops of several threads all add to it."""
    return int(op_costs(trace).self_ns[counted_ops(trace)].sum())


def loose_allocations(trace: Trace) -> Int64:
    """Positions of the allocations outside all counted events: the ops of their thread, and all scopes."""
    records = trace.allocations
    if records is None:
        return np.empty(0, np.int64)
    loose = np.ones(len(records), np.bool_)
    for events, rows in _seen_by(trace, records):
        events = events[~is_bookkeeping(trace)[events] & ~trace.on_device[events]]
        if len(events):
            times = records.time_ns[rows]
            reached = np.maximum.accumulate(trace.end_ns[events])
            last = np.searchsorted(trace.start_ns[events], times, side="right") - 1
            loose[rows] &= (last < 0) | (reached[np.maximum(last, 0)] < times)
    return np.flatnonzero(loose)


def _seen_by(trace: Trace, records: Allocations) -> Iterator[tuple[Int64, Int64]]:
    """Pairs of events and the records that count for them.

    For an op, records of its own thread count, as ops of several threads run at once; for other events, all records
    of the process.
    """
    everything, all_records = np.arange(len(trace)), np.arange(len(records))
    for events, rows in zip(trace.by_process(trace.track), trace.by_process(records.track), strict=True):
        threads = {int(records.track[one[0]]): one for one in _by_track(records.track, all_records[rows])}
        is_apart = (trace.kind[events] == OP) & (len(threads) > 1)
        yield everything[events][~is_apart], all_records[rows]
        for ops in _by_track(trace.track, everything[events][is_apart]):
            own = threads.get(int(trace.track[ops[0]]))
            if own is not None:
                yield ops, own


def _by_track(track: Int32, rows: Int64) -> list[Int64]:
    return [rows[run] for run in runs_of_equal(track[rows])]


def _keepers(trace: Trace, nested: Nesting) -> Int32:
    """For each event the one that it is folded into: itself, unless it is the only child of a namesake."""
    keeper = np.arange(len(trace), dtype=np.int32)
    inner = np.flatnonzero(nested.parent >= 0)
    outer = nested.parent[inner]
    only = np.bincount(outer, minlength=len(trace))[outer] == 1
    namesake = _averaged_names(trace)[trace.name[inner[only]]] == _averaged_names(trace)[trace.name[outer[only]]]
    folded = inner[only][namesake]
    keeper[folded] = nested.parent[folded]
    while True:
        above = keeper[keeper[folded]]
        if np.array_equal(above, keeper[folded]):
            return keeper
        keeper[folded] = above


def _averaged_names(trace: Trace) -> Int32:
    """For each name of the trace the first name that is averaged with it."""
    first: dict[str, int] = {}
    return np.array([first.setdefault(averaged_name(name), index) for index, name in enumerate(trace.names)], np.int32)


def _costs(trace: Trace, counted: Bool, nested: Nesting, keeper: Int32, launcher: Int32 | None) -> Costs:
    on_device = trace.on_device
    has_kernels = bool(on_device.any())
    total_ns = np.where(on_device, 0, trace.duration_ns) if has_kernels else trace.duration_ns
    parent = np.where(nested.parent >= 0, keeper[nested.parent], np.int32(-1))
    device_ns, self_device_ns = _device_time(trace, nested, keeper, launcher) if has_kernels else (None, None)
    return Costs(
        counted=counted,
        parent=parent,
        total_ns=total_ns,
        self_ns=np.maximum(_without_children(total_ns, nested, keeper), 0),
        device_ns=device_ns,
        self_device_ns=self_device_ns,
        memory=_memory(trace, nested, keeper),
    )


def _without_children(total: Int64, nested: Nesting, keeper: Int32) -> Int64:
    """The total of each nested event minus its children's; a folded event adds its own to its keeper."""
    own = np.where(nested.depth >= 0, total, 0)
    inner = np.flatnonzero(nested.parent >= 0)
    np.subtract.at(own, nested.parent[inner], total[inner])
    folded = np.flatnonzero(keeper != np.arange(len(keeper)))
    np.add.at(own, keeper[folded], own[folded])
    return own


def _device_time(trace: Trace, nested: Nesting, keeper: Int32, launcher: Int32 | None) -> tuple[Int64, Int64]:
    """Device time, total and self: a kernel has its duration, a host event the sum of the kernels that it launched.

    As in torch's rows, a scope on a device has its own duration; nothing else counts that.
    """
    own = np.zeros(len(trace), np.int64)
    if launcher is not None:
        launched = np.flatnonzero(trace.is_device_work & (launcher >= 0))
        launched = launched[nested.depth[launcher[launched]] >= 0]
        np.add.at(own, keeper[launcher[launched]], trace.duration_ns[launched])
    total = nested.subtree_sum(own)
    timed = trace.is_device_work | (trace.kind == DEVICE_SCOPE)
    return np.where(timed, trace.duration_ns, total), np.where(timed, trace.duration_ns, own)


def _memory(trace: Trace, nested: Nesting, keeper: Int32) -> Bytes | None:
    cpu_devices = np.array([device == "CPU" for device in trace.devices], np.bool_)
    if trace.allocations is not None:
        cpu = _allocated_during(trace, trace.allocations, cpu_devices[trace.allocations.device])
        cpu = np.where(lacks_memory(trace), 0, cpu)
        device = _allocated_during(trace, trace.allocations, ~cpu_devices[trace.allocations.device])
    elif trace.memory_before is not None and trace.memory_after is not None:
        change, known = trace.memory_after - trace.memory_before, trace.memory_before >= 0
        on_cpu = cpu_devices[trace.device]
        cpu = _with_gaps_filled(np.where(known & on_cpu, change, 0), known & on_cpu, nested)
        device = _with_gaps_filled(np.where(known & ~on_cpu, change, 0), known & ~on_cpu, nested)
    else:
        return None
    return Bytes(cpu, _without_children(cpu, nested, keeper), device, _without_children(device, nested, keeper))


def _with_gaps_filled(change: Int64, known: Bool, nested: Nesting) -> Int64:
    """`change`, with the sum of the children where an event's own change is not known."""
    for level in reversed(nested.levels()[1:]):
        unknown = level[~known[nested.parent[level]]]
        np.add.at(change, nested.parent[unknown], change[unknown])
    return change


def _allocated_during(trace: Trace, records: Allocations, chosen: Bool) -> Int64:
    """Bytes of the chosen records from each host event's first moment to its last."""
    nbytes = np.zeros(len(trace), np.int64)
    for events, every in _seen_by(trace, records):
        rows = every[chosen[every]]
        if len(rows):
            running = np.concatenate(([0], np.cumsum(records.nbytes[rows])))
            first = np.searchsorted(records.time_ns[rows], trace.start_ns[events], side="left")
            last = np.searchsorted(records.time_ns[rows], trace.end_ns[events], side="right")
            nbytes[events] = np.where(trace.on_device[events], 0, running[last] - running[first])
    return nbytes
