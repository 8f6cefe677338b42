"""Makes a `Trace` of one Kineto result. Each part is read only where its flag is on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mtprof_nb.capture.activities import device_type_name
from mtprof_nb.capture.clock import WallClock
from mtprof_nb.capture.distributed import this_process
from mtprof_nb.capture.hook import Request
from mtprof_nb.capture.kineto import kineto_tree
from mtprof_nb.capture.kineto.busy_threads import Unfinished
from mtprof_nb.capture.kineto.fast_scopes import FastScopes, with_inputs
from mtprof_nb.capture.kineto.kineto_events import KinetoColumns, read_columns, read_devices
from mtprof_nb.capture.kineto.kineto_flops import kineto_flops
from mtprof_nb.capture.kineto.kineto_inputs import read_extras, read_record_functions, read_shapes, read_values
from mtprof_nb.capture.kineto.kineto_links import KinetoLinks, link
from mtprof_nb.capture.kineto.module_names import paths_of_modules
from mtprof_nb.capture.kineto.new_thread_stacks import ThreadStacks
from mtprof_nb.capture.kineto.optimizer_parameters import nodes_by_id, nodes_in_steps, updated_parameters
from mtprof_nb.capture.kineto.own_python import own_python
from mtprof_nb.capture.shared.allocator_records import innermost_events
from mtprof_nb.capture.shared.closures import with_closures
from mtprof_nb.capture.shared.garbage_collector import collector_paused
from mtprof_nb.capture.shared.interning import intern
from mtprof_nb.capture.shared.python_stacks import frames_of
from mtprof_nb.capture.shared.thread_intervals import ThreadIntervals
from mtprof_nb.errors import warn
from mtprof_nb.model.device_facts import with_device_facts
from mtprof_nb.model.trace import OP, OPTIMIZER, PYTHON, SCOPE, Bool, Trace, Track, empty_trace, on_device


@dataclass(frozen=True)
class Noted:
    """Facts that were noted beside Kineto's recording."""

    thread_names: dict[int, str] = field(default_factory=dict)
    new_threads: ThreadStacks | None = None
    wall: WallClock | None = None
    #: Autograd's next sequence number as the recording ended, by native thread.
    counters: dict[int, int] = field(default_factory=dict)
    fast_scopes: FastScopes | None = None
    #: Filled in by `build_trace`: ops and scopes that had not ended when the recording did.
    unfinished: list[Unfinished] = field(default_factory=list)


def build_trace(results: Any, torch: Any, request: Request, noted: Noted) -> Trace:
    """The trace of one window; an empty one where Kineto gave nothing."""
    if results is None:
        return empty_trace(recorded=request.recorded)
    jumped = noted.wall if noted.wall is not None and noted.wall.has_jumped else None
    with collector_paused():
        return _build(results, torch, request, noted, jumped)


def _build(results: Any, torch: Any, request: Request, noted: Noted, jumped: WallClock | None) -> Trace:
    recorded = request.recorded
    kineto_event = torch._C._autograd._KinetoEvent
    with_python = recorded.with_stack or recorded.with_modules
    columns = read_columns(
        results,
        kineto_event,
        with_python=with_python,
        thread_names=noted.thread_names,
        timeout_s=request.post_processing_timeout_s,
        began_ns=0 if jumped is not None and jumped.has_turned else results.trace_start_ns(),
        straighten=jumped.of_session if jumped is not None else None,
    )
    if columns.unread:
        warn(f"post_processing_timeout_s ended the reading: the last {columns.unread:,} events are missing; raise it")
    noted.unfinished.extend(columns.unfinished())
    links = link(columns, kineto_event, noted.counters)
    kind = np.select([columns.is_scope, columns.is_python], [SCOPE, PYTHON], OP).astype(np.int8)
    count = len(columns)
    trace = Trace(
        name=columns.name,
        kind=kind,
        device=np.zeros(count, np.int8),
        device_index=np.zeros(count, np.int8),
        start_ns=columns.start_ns,
        duration_ns=columns.duration_ns,
        track=columns.thread,
        phase=links.phase,
        correlation_id=np.zeros(count, np.int64),
        sequence_nr=columns.sequence_nr,
        forward=links.forward,
        step=np.zeros(count, np.int32),
        is_async=columns.is_async,
        names=columns.names,
        devices=("CPU",),
        tracks=columns.threads,
        processes=(this_process(),),
        recorded=recorded,
        dropped=columns.unread,
    )
    trace = with_closures(trace)
    if request.activities != {"CPU"}:
        trace = _with_devices(trace, columns, kineto_event)
    if recorded.record_shapes or recorded.with_flops:
        trace = _with_shapes(trace, columns, kineto_event, torch, request)
    trace = _with_metadata(trace, columns, results, kineto_event, request)
    if request.experimental_config is not None:
        trace = _with_overloads(trace, columns, kineto_event)
    backend = torch._C._get_privateuse1_backend_name()
    devices_from_inputs = recorded.record_shapes and backend != "privateuseone"
    needs_tree = with_python or recorded.profile_memory or devices_from_inputs
    tree = kineto_tree.flatten(results, jumped) if needs_tree else None
    if recorded.record_shapes:
        trace = _with_parameters(trace, columns, results, tree, torch)
    if tree is not None:
        if devices_from_inputs:
            trace = _with_devices_of_inputs(trace, columns, tree, backend)
        if recorded.profile_memory:
            trace = _with_memory(trace, columns, tree)
        if with_python:
            trace = _with_python(trace, columns, links, tree, noted.new_threads)
    if noted.fast_scopes is not None:
        trace = with_inputs(trace, noted.fast_scopes.left)
    return _numbered(trace.sorted())


def _numbered(trace: Trace) -> Trace:
    is_op = trace.kind == OP
    return replace(trace, correlation_id=np.cumsum(is_op) * is_op)


def _with_devices(trace: Trace, columns: KinetoColumns, kineto_event: Any) -> Trace:
    found = read_devices(columns.events, kineto_event, device_type_name)
    kind = np.where(found.kind >= 0, found.kind, trace.kind)
    tracks, track = list(trace.tracks), trace.track.copy()
    streams: dict[tuple[str, int, int], int] = {}
    for row in np.flatnonzero(on_device(kind)).tolist():
        stream = (found.devices[found.device[row]], int(found.device_index[row]), int(found.resource[row]))
        if stream not in streams:
            name, index, number = stream
            streams[stream] = len(tracks)
            tracks.append(Track(number, f"stream {number}", "stream", device=f"{name}:{index}"))
        track[row] = streams[stream]
    launched = found.launcher >= 0
    phase = np.where(launched, trace.phase[found.launcher], trace.phase)
    return replace(
        trace,
        kind=kind,
        device=found.device,
        devices=found.devices,
        device_index=found.device_index,
        launcher=found.launcher,
        launch=found.launch,
        track=track,
        tracks=tuple(tracks),
        phase=phase,
    )


def _with_shapes(trace: Trace, columns: KinetoColumns, kineto_event: Any, torch: Any, request: Request) -> Trace:
    has_inputs = (trace.kind == OP) | (trace.kind == SCOPE)
    found = read_shapes(columns.events, kineto_event, has_inputs, with_strides=request.recorded.record_shapes)
    if request.recorded.with_flops:
        trace = replace(trace, flops=kineto_flops(torch, columns, found))
    if not request.recorded.record_shapes:
        return trace
    # A scope has inputs only where it was given some.
    shape = np.where((trace.kind == OP) | _has_any(found.shapes)[found.shape], found.shape, -1)
    values, texts = read_values(columns.events, kineto_event, has_inputs)
    return replace(
        trace,
        shape=shape,
        shapes=found.shapes,
        dtypes=found.dtypes,
        strides=found.strides,
        values=values,
        value_texts=texts,
    )


def _has_any(table: tuple[Any, ...]) -> Bool:
    """Whether each entry of a table holds anything; no for position -1."""
    return np.array([*map(bool, table), False])


def _with_metadata(trace: Trace, columns: KinetoColumns, results: Any, kineto_event: Any, request: Request) -> Trace:
    if request.has_execution_trace:
        trace = replace(trace, record_function=read_record_functions(results, columns.events, kineto_event))
    extra, extras = read_extras(trace, columns, kineto_event)
    if extras:
        trace = replace(trace, extra=extra, extras=extras)
    return with_device_facts(trace) if extras or trace.on_device.any() else trace


def _with_overloads(trace: Trace, columns: KinetoColumns, kineto_event: Any) -> Trace:
    """Names of overloads. Kineto has them where torch's config asks for them, which the config cannot tell us."""
    overload, overloads = intern([name or None for name in map(kineto_event.overload_name, columns.events)])
    return replace(trace, overload=overload, overloads=overloads) if overloads else trace


def _with_parameters(
    trace: Trace, columns: KinetoColumns, results: Any, tree: kineto_tree.FlatTree | None, torch: Any
) -> Trace:
    rows = np.flatnonzero((trace.phase == OPTIMIZER) & (trace.kind == OP))
    rows = rows[np.lexsort((-trace.duration_ns[rows], trace.start_ns[rows], trace.track[rows]))]
    parameter = np.full(len(trace), -1, np.int32)
    if not len(rows):
        return replace(trace, parameter=parameter)
    ids = [columns.events[row].correlation_id() for row in rows.tolist()]
    # With Python calls in the tree, ops are not below the scope of their step.
    nodes = nodes_in_steps(results) if tree is None else nodes_by_id(tree.nodes, ids)
    ops = ThreadIntervals(trace.start_ns[rows], trace.end_ns[rows], trace.track[rows])
    parameter[rows], names = updated_parameters(ops, [nodes.get(one) for one in ids], torch)
    return replace(trace, parameter=parameter, parameters=names)


def _with_devices_of_inputs(trace: Trace, columns: KinetoColumns, tree: kineto_tree.FlatTree, backend: str) -> Trace:
    """The device of each op's tensors, for a backend made in Python: Kineto calls all of its ops CPU ops."""
    index_of = kineto_tree.indices_of_inputs_on(tree, backend)
    found = [index_of.get(event.correlation_id(), -1) for event in columns.events]
    index = np.where(trace.kind == OP, np.array(found, np.int8), np.int8(-1))
    name = device_type_name(backend)
    devices = trace.devices if name in trace.devices else (*trace.devices, name)
    return replace(
        trace,
        devices=devices,
        device=np.where(index >= 0, devices.index(name), trace.device),
        device_index=np.where(index >= 0, index, trace.device_index),
    )


def _with_python(
    trace: Trace,
    columns: KinetoColumns,
    links: KinetoLinks,
    tree: kineto_tree.FlatTree,
    new_threads: ThreadStacks | None,
) -> Trace:
    side = kineto_tree.python_side(tree, with_modules=trace.recorded.with_modules)
    count = len(trace)
    stack, module, began = np.full(count, -1, np.int32), np.full(count, -1, np.int32), np.zeros(count, np.int64)
    for index, thread in enumerate(columns.threads):
        calls = side.threads.get(thread.number)
        rows = np.flatnonzero(columns.thread == index)
        if calls is None:
            if new_threads is not None:
                entries, began[rows] = new_threads.at(thread.native_id, columns.start_ns[rows])
                node_of = {entry: side.stacks.stack(frames_of(entry)) for entry in set(entries)}
                stack[rows] = [node_of[entry] for entry in entries]
            continue
        at = calls.at(columns.start_ns[rows])
        running = at >= 0
        rows, at = rows[running], at[running]
        stack[rows], began[rows] = calls.stack[at], calls.start_ns[at]
        own = ~columns.is_python[rows]
        stack[rows[own]] = kineto_tree.running_stacks(tree, side, calls, at[own])
        module[rows] = calls.innermost_module()[at]
    # In the backward pass an op without Python of its own takes the stack of its forward op.
    node_start = np.where(links.node >= 0, columns.start_ns[links.node], 0)
    of_forward = (links.forward >= 0) & (began < node_start) & ~columns.is_python
    stack = np.where(of_forward, stack[links.forward], stack)
    module = np.where(of_forward, module[links.forward], module)
    changed: dict[str, Any] = {}
    if trace.recorded.with_modules:
        paths = paths_of_modules(side.modules)
        of_module, table = intern(paths)
        changed |= {"module": np.where(module >= 0, of_module[module], -1) if paths else module, "modules": table}
    if trace.recorded.with_stack:
        changed |= {"stack": stack, "stacks": side.stacks.tree(), "stack_is_forward": of_forward}
    trace = replace(trace, **changed)
    is_shown = trace.recorded.with_stack and not tree.is_turned
    hidden = own_python(columns) if is_shown else columns.is_python
    has_ops = np.isin(columns.thread, columns.thread[~columns.is_python])
    return _used_threads(trace.take(np.flatnonzero(~hidden & has_ops)))


def _used_threads(trace: Trace) -> Trace:
    """`trace` without the threads that have no event, such as a notebook's own threads."""
    used = np.unique(trace.track)
    if len(used) == len(trace.tracks):
        return trace
    changed: dict[str, Any] = {"tracks": tuple(trace.tracks[one] for one in used)}
    if trace.allocations is not None:
        position = np.full(len(trace.tracks) + 1, -1, np.int32)
        position[used] = np.arange(len(used))
        changed["allocations"] = replace(trace.allocations, track=position[trace.allocations.track])
    return replace(trace, track=np.searchsorted(used, trace.track).astype(np.int32), **changed)


def _with_memory(trace: Trace, columns: KinetoColumns, tree: kineto_tree.FlatTree) -> Trace:
    """`trace` with all of the allocator's records; `with_own_memory` makes totals of them when all parts are merged."""
    records, torch_devices = kineto_tree.allocations(tree, [thread.number for thread in columns.threads])
    names = [device_type_name(name) for name in torch_devices]
    devices = tuple(dict.fromkeys((*trace.devices, *names)))
    device = np.array([devices.index(name) for name in names], np.int8)[records.device]
    records = replace(records, device=device)
    return replace(trace, allocations=replace(records, event=innermost_events(trace, records)), devices=devices)
