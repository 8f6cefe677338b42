"""Makes a `Trace` of one Kineto result. Each part is read only where its flag is on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mtprof_nb.building.allocator_records import owns_memory
from mtprof_nb.building.autograd_nodes import NodeLinks, link
from mtprof_nb.building.closures import with_closures
from mtprof_nb.building.interning import intern
from mtprof_nb.building.paused_collector import collector_paused
from mtprof_nb.building.thread_intervals import ThreadIntervals
from mtprof_nb.capture.activities import device_type_name
from mtprof_nb.capture.clock import WallClock
from mtprof_nb.capture.distributed import this_process
from mtprof_nb.capture.hook import Request
from mtprof_nb.capture.kineto import kineto_tree
from mtprof_nb.capture.kineto.busy_threads import Unfinished
from mtprof_nb.capture.kineto.kineto_addresses import addresses_of_inputs, nodes_by_id, nodes_in_steps
from mtprof_nb.capture.kineto.kineto_devices import read_devices, without_calls
from mtprof_nb.capture.kineto.kineto_events import KinetoColumns, forward_threads, read_columns
from mtprof_nb.capture.kineto.kineto_flops import kineto_flops
from mtprof_nb.capture.kineto.kineto_inputs import read_extras, read_record_functions, read_shapes, read_values
from mtprof_nb.capture.kineto.new_thread_stacks import ThreadStacks
from mtprof_nb.capture.kineto.own_python import own_python
from mtprof_nb.capture.samples.python_stacks import frames_of
from mtprof_nb.capture.torch_facts.fast_scopes import FastScopes, with_inputs
from mtprof_nb.capture.torch_facts.garbage_collector import LivingObjects
from mtprof_nb.capture.torch_facts.module_names import paths_of_modules
from mtprof_nb.capture.torch_facts.optimizer_parameters import parameter_of, parameter_owners, updated_parameters
from mtprof_nb.errors import warn
from mtprof_nb.model.device_facts import device_facts
from mtprof_nb.model.schema import Columns, Int8, Int32, Int64
from mtprof_nb.model.trace import (
    OP,
    OPTIMIZER,
    PYTHON,
    SCOPE,
    Recorded,
    Trace,
    correlation_ids,
    on_device,
    taken,
)


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
        columns = replace(columns, thread=devices["track"], threads=devices["tracks"])
    host = without_calls(columns, devices["kind"]) if devices else columns
    links = link(host, forward_threads(columns, kineto_event), noted.counters)
    made = _events(columns, links, recorded, devices)
    if recorded.record_shapes or recorded.with_flops:
        made |= _shapes(made["kind"], columns, kineto_event, torch, recorded)
    if request.has_execution_trace:
        made["record_function"] = read_record_functions(results, columns.events, kineto_event)
    made |= _extras(made, columns, kineto_event)
    if request.experimental_config is not None:
        made |= _overloads(columns, kineto_event)
    backend = torch._C._get_privateuse1_backend_name()
    devices_from_inputs = recorded.record_shapes and backend != "privateuseone"
    needs_tree = with_python or recorded.profile_memory or devices_from_inputs
    tree = kineto_tree.flatten(results, jumped) if needs_tree else None
    if recorded.record_shapes:
        made |= _parameters(made, columns, results, tree, torch)
    if tree is not None:
        if devices_from_inputs:
            made |= _devices_of_inputs(made, columns, tree, backend)
        if recorded.profile_memory:
            made |= _memory(made, columns, tree)
        if with_python:
            made |= _python(columns, links, tree, noted.new_threads, recorded, _causes(made))
            made |= taken(made, _shown(columns, recorded.with_stack and not tree.is_turned))
            made |= _used_threads(made)
    if noted.fast_scopes is not None:
        made |= with_inputs(made, noted.fast_scopes.left)
    return Trace(**made, correlation_id=correlation_ids(made["kind"]))


def _events(columns: KinetoColumns, links: NodeLinks, recorded: Recorded, devices: Columns) -> Columns:
    """The columns that every recording has, and those of `devices`."""
    count = len(columns)
    made: Columns = {
        "name": columns.name,
        "kind": np.select([columns.is_scope, columns.is_python], [SCOPE, PYTHON], OP).astype(np.int8),
        "device": np.zeros(count, np.int8),
        "device_index": np.zeros(count, np.int8),
        "start_ns": columns.start_ns,
        "duration_ns": columns.duration_ns,
        "track": columns.thread,
        "phase": links.phase,
        "sequence_nr": columns.sequence_nr,
        "forward": links.forward,
        "step": np.zeros(count, np.int32),
        "is_async": columns.is_async,
        "names": columns.names,
        "devices": ("CPU",),
        "tracks": columns.threads,
        "processes": (this_process(),),
        "recorded": recorded,
        "dropped": columns.unread,
    }
    if devices:
        known: Int8 = devices["kind"]
        made |= devices | {"kind": np.where(known >= 0, known, made["kind"])}
    phase = with_closures(made)
    launcher = devices.get("launcher", np.full(count, -1, np.int32))
    return made | {"phase": np.where(launcher >= 0, phase[launcher], phase)}


def _shapes(kind: Int8, columns: KinetoColumns, kineto_event: Any, torch: Any, recorded: Recorded) -> Columns:
    has_inputs = (kind == OP) | (kind == SCOPE)
    found = read_shapes(columns.events, kineto_event, has_inputs, with_strides=recorded.record_shapes)
    shape, shapes = found["shape"], found["shapes"]
    flops: Columns = {"flops": kineto_flops(torch, columns, shape, shapes)} if recorded.with_flops else {}
    if not recorded.record_shapes:
        return flops
    # A scope has inputs only where it was given some.
    has_any = np.array([*map(bool, shapes), False])[shape]
    values, texts = read_values(columns.events, kineto_event, has_inputs)
    return (
        found | flops | {"shape": np.where((kind == OP) | has_any, shape, -1), "values": values, "value_texts": texts}
    )


def _extras(made: Columns, columns: KinetoColumns, kineto_event: Any) -> Columns:
    extra, extras = read_extras(made["kind"], columns, kineto_event)
    found: Columns = {"extra": extra, "extras": extras} if extras else {}
    return found | device_facts(made | found) if extras or on_device(made["kind"]).any() else found


def _overloads(columns: KinetoColumns, kineto_event: Any) -> Columns:
    """Names of overloads. Kineto has them where torch's config asks for them, which the config cannot tell us."""
    overload, overloads = intern([name or None for name in map(kineto_event.overload_name, columns.events)])
    return {"overload": overload, "overloads": overloads} if overloads else {}


def _parameters(
    made: Columns, columns: KinetoColumns, results: Any, tree: kineto_tree.FlatTree | None, torch: Any
) -> Columns:
    rows = np.flatnonzero((made["phase"] == OPTIMIZER) & (made["kind"] == OP))
    rows = rows[np.argsort(made["track"][rows], kind="stable")]
    parameter = np.full(len(columns), -1, np.int32)
    if not len(rows):
        return {"parameter": parameter}
    ids = [columns.events[row].correlation_id() for row in rows.tolist()]
    # With Python calls in the tree, ops are not below the scope of their step.
    nodes = nodes_in_steps(results) if tree is None else nodes_by_id(tree.nodes, ids)
    ops = ThreadIntervals(columns.start_ns[rows], columns.end_ns[rows], made["track"][rows])
    owners = parameter_owners(LivingObjects(torch))
    parameter[rows], names = updated_parameters(
        ops, lambda row: parameter_of(addresses_of_inputs(nodes.get(ids[row])), owners)
    )
    return {"parameter": parameter, "parameters": names}


def _devices_of_inputs(made: Columns, columns: KinetoColumns, tree: kineto_tree.FlatTree, backend: str) -> Columns:
    """The device of each op's tensors, for a backend made in Python: Kineto calls all of its ops CPU ops."""
    index_of = kineto_tree.indices_of_inputs_on(tree, backend)
    found = [index_of.get(event.correlation_id(), -1) for event in columns.events]
    index = np.where(made["kind"] == OP, np.array(found, np.int8), np.int8(-1))
    devices = tuple(dict.fromkeys((*made["devices"], device_type_name(backend))))
    return {
        "devices": devices,
        "device": np.where(index >= 0, devices.index(device_type_name(backend)), made["device"]),
        "device_index": np.where(index >= 0, index, made["device_index"]),
    }


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
    node_start = np.where(links.node >= 0, columns.start_ns[links.node], 0)
    of_forward = (links.forward >= 0) & (began < node_start) & ~columns.is_python
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


def _causes(made: Columns) -> Int32:
    """For each event on a device the op that launched it, or else the call that did; -1 for all other events."""
    if made.get("launcher") is None:
        return np.full(len(made["kind"]), -1, np.int32)
    cause = np.where(made["launcher"] >= 0, made["launcher"], made["launch"])
    return np.where(on_device(made["kind"]), cause, -1).astype(np.int32)


def _shown(columns: KinetoColumns, with_calls: bool) -> Int64:
    """The events that are kept: Python calls if they are wanted, but not our own, nor on threads without ops."""
    hidden = own_python(columns) if with_calls else columns.is_python
    has_ops = np.isin(columns.thread, columns.thread[~columns.is_python])
    return np.flatnonzero(~hidden & has_ops)


def _used_threads(made: Columns) -> Columns:
    """Tracks without the threads that have no event, such as a notebook's own threads."""
    used = np.unique(made["track"])
    position = np.full(len(made["tracks"]) + 1, -1, np.int32)
    position[used] = np.arange(len(used))
    found: Columns = {"tracks": tuple(made["tracks"][one] for one in used), "track": position[made["track"]]}
    if "allocations" in made:
        found["allocations"] = replace(made["allocations"], track=position[made["allocations"].track])
    return found


def _memory(made: Columns, columns: KinetoColumns, tree: kineto_tree.FlatTree) -> Columns:
    """All of the allocator's records; `with_own_memory` makes totals of them when all parts are merged."""
    records, torch_devices = kineto_tree.allocations(tree, [thread.number for thread in columns.threads])
    names = [device_type_name(name) for name in torch_devices]
    devices = tuple(dict.fromkeys((*made["devices"], *names)))
    device = np.array([devices.index(name) for name in names], np.int8)[records.device]
    owns = owns_memory(made["kind"], columns.is_async)
    event = columns.intervals.running(owns, records.track, records.time_ns).astype(np.int32)
    return {"allocations": replace(records, device=device, event=event), "devices": devices}
