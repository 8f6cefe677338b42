"""Makes a `Trace` of one Kineto result. Each part is read only where its flag is on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mtprof_nb.building.allocator_records import UnownedRecords
from mtprof_nb.building.autograd_nodes import NodeLinks, link
from mtprof_nb.building.interning import intern
from mtprof_nb.building.paused_collector import collector_paused
from mtprof_nb.building.trace_builder import OwnParameters, build
from mtprof_nb.capture.activities import device_type_name
from mtprof_nb.capture.clock import WallClock
from mtprof_nb.capture.distributed import this_process
from mtprof_nb.capture.flops import Inputs, flops_by_inputs
from mtprof_nb.capture.hook import Request
from mtprof_nb.capture.kineto import kineto_tree
from mtprof_nb.capture.kineto.busy_threads import Unfinished
from mtprof_nb.capture.kineto.kineto_devices import read_devices
from mtprof_nb.capture.kineto.kineto_events import KinetoColumns, forward_threads, read_columns
from mtprof_nb.capture.kineto.kineto_inputs import read_extras, read_record_functions, read_shapes, read_values
from mtprof_nb.capture.kineto.new_thread_stacks import ThreadStacks
from mtprof_nb.capture.kineto.own_python import own_python
from mtprof_nb.capture.living_objects import LivingObjects, parameter_of, parameter_owners, paths_of_modules
from mtprof_nb.capture.samples.python_stacks import frames_of
from mtprof_nb.capture.torch_private.fast_scopes import FastScopes
from mtprof_nb.errors import warn
from mtprof_nb.model.schema import Columns, Int8, Int32, Int64
from mtprof_nb.model.trace import Recorded, Trace, on_device


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


@collector_paused()
def build_trace(results: Any, torch: Any, request: Request, noted: Noted) -> Trace:
    """The trace of one window."""
    jumped = noted.wall if noted.wall is not None and noted.wall.has_jumped else None
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
    devices = read_devices(columns, kineto_event, device_type_name) if request.activities != {"CPU"} else {}
    if devices:
        columns = replace(columns, thread=devices["track"], threads=devices["tracks"], kind=devices["kind"])
    links = link(columns, forward_threads(columns, kineto_event), noted.counters)
    facts: Columns = {"processes": (this_process(),), "recorded": recorded, "dropped": columns.unread}
    facts |= devices
    if recorded.record_shapes or recorded.with_flops:
        facts |= _inputs(columns, kineto_event, torch, recorded)
    if request.has_execution_trace:
        facts["record_function"] = read_record_functions(results, columns.events, kineto_event)
    facts |= read_extras(columns, kineto_event)
    if request.experimental_config is not None:
        facts |= _overloads(columns, kineto_event)
    backend = torch._C._get_privateuse1_backend_name()
    devices_from_inputs = recorded.record_shapes and backend != "privateuseone"
    needs_tree = with_python or recorded.profile_memory or devices_from_inputs
    tree = kineto_tree.flatten(results, jumped) if needs_tree else None
    own_parameters = _own_parameters(columns, results, tree, torch) if recorded.record_shapes else None
    scopes = () if noted.fast_scopes is None else noted.fast_scopes.left
    if tree is None:
        return build(columns, links, facts, scopes=scopes, own_parameters=own_parameters)
    if with_python:
        causes = _causes(devices, len(columns))
        facts |= _python(columns, links, tree, noted.new_threads, recorded, causes)
    trace = build(
        columns,
        links,
        facts,
        scopes=scopes,
        own_parameters=own_parameters,
        input_devices=_devices_of_inputs(columns, tree, backend) if devices_from_inputs else None,
        records=_records(columns, tree) if recorded.profile_memory else None,
    )
    with_calls = recorded.with_stack and not tree.is_turned
    return _with_used_threads(trace.take(_shown(columns, with_calls))) if with_python else trace


def _inputs(columns: KinetoColumns, kineto_event: Any, torch: Any, recorded: Recorded) -> Columns:
    has_inputs = columns.is_op | columns.is_scope
    found = read_shapes(columns.events, kineto_event, has_inputs, with_strides=recorded.record_shapes)
    values, texts = read_values(columns.events, kineto_event, has_inputs)
    flops: Columns = {}
    if recorded.with_flops:
        inputs = Inputs(found["shape"], found["shapes"], found["dtypes"])
        flops["flops"] = flops_by_inputs(torch, columns, inputs, (values, texts))
    found |= {"values": values, "value_texts": texts}
    return flops | found if recorded.record_shapes else flops


def _overloads(columns: KinetoColumns, kineto_event: Any) -> Columns:
    """Names of overloads. Kineto has them where torch's config asks for them, which the config cannot tell us."""
    overload, overloads = intern([name or None for name in map(kineto_event.overload_name, columns.events)])
    return {"overload": overload, "overloads": overloads} if overloads else {}


def _own_parameters(
    columns: KinetoColumns, results: Any, tree: kineto_tree.FlatTree | None, torch: Any
) -> OwnParameters:
    def own(rows: Int64) -> list[str | None]:
        ids = [columns.events[row].correlation_id() for row in rows.tolist()]
        inputs = kineto_tree.addresses_of_inputs(kineto_tree.flatten(results) if tree is None else tree, ids)
        owners = parameter_owners(LivingObjects(torch))
        return [parameter_of(inputs.get(one, ()), owners) for one in ids]

    return own


def _devices_of_inputs(columns: KinetoColumns, tree: kineto_tree.FlatTree, backend: str) -> tuple[str, Int8]:
    index_of = kineto_tree.indices_of_inputs_on(tree, backend)
    found = [index_of.get(event.correlation_id(), -1) for event in columns.events]
    return device_type_name(backend), np.array(found, np.int8)


def _python(
    columns: KinetoColumns,
    links: NodeLinks,
    tree: kineto_tree.FlatTree,
    new_threads: ThreadStacks | None,
    recorded: Recorded,
    causes: Int32,
) -> Columns:
    """Stacks and modules: those of the Python call that was running as each event, or its cause, began."""
    side = kineto_tree.python_side(tree, with_modules=recorded.with_modules)
    count = len(columns)
    stack, module, began = np.full(count, -1, np.int32), np.full(count, -1, np.int32), np.zeros(count, np.int64)
    for index, thread in enumerate(columns.threads):
        if thread.kind == "stream":
            continue
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
    of_forward = links.lacking_python(began, columns.start_ns) & ~columns.is_python
    stack = np.where(of_forward, stack[links.forward], stack)
    module = np.where(of_forward, module[links.forward], module)
    stack, module, of_forward = (np.where(causes >= 0, one[causes], one) for one in (stack, module, of_forward))
    made: Columns = {}
    if recorded.with_modules:
        paths = paths_of_modules(side.modules)
        of_module, table = intern(paths)
        made |= {"module": np.where(module >= 0, of_module[module], -1) if paths else module, "modules": table}
    if recorded.with_stack:
        made |= {"stack": stack, "stacks": side.stacks.tree(), "stack_is_forward": of_forward}
    return made


def _causes(devices: Columns, count: int) -> Int32:
    """For each event on a device the op that launched it, or else the call that did; -1 for all other events."""
    if not devices:
        return np.full(count, -1, np.int32)
    cause = np.where(devices["launcher"] >= 0, devices["launcher"], devices["launch"])
    return np.where(on_device(devices["kind"]), cause, -1).astype(np.int32)


def _shown(columns: KinetoColumns, with_calls: bool) -> Int64:
    """The events that are kept: Python calls if they are wanted, but not our own, nor on threads without ops."""
    hidden = own_python(columns) if with_calls else columns.is_python
    has_ops = np.isin(columns.thread, columns.thread[~columns.is_python])
    return np.flatnonzero(~hidden & has_ops)


def _with_used_threads(trace: Trace) -> Trace:
    """`trace` without the threads that have no event, such as a notebook's own threads."""
    used = np.unique(trace.track)
    position = np.full(len(trace.tracks) + 1, -1, np.int32)
    position[used] = np.arange(len(used))
    records = trace.allocations
    return replace(
        trace,
        tracks=tuple(trace.tracks[one] for one in used),
        track=position[trace.track],
        allocations=None if records is None else replace(records, track=position[records.track]),
    )


def _records(columns: KinetoColumns, tree: kineto_tree.FlatTree) -> UnownedRecords:
    records, devices = kineto_tree.allocations(tree, [thread.number for thread in columns.threads])
    return UnownedRecords(records, [device_type_name(name) for name in devices])
