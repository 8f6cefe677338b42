"""Makes a `Trace` of what the native recorder returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mtprof_nb.building.autograd_nodes import NodeLinks, link
from mtprof_nb.building.closures import with_closures
from mtprof_nb.building.host_events import HostEvents
from mtprof_nb.building.paused_collector import collector_paused
from mtprof_nb.building.thread_intervals import ThreadIntervals
from mtprof_nb.capture.activities import device_type_name
from mtprof_nb.capture.distributed import this_process
from mtprof_nb.capture.flops.shape_flops import Inputs, flops_by_inputs
from mtprof_nb.capture.hook import Request, full
from mtprof_nb.capture.native.native_stacks import NODE_TYPES, NativeStacks, read_stacks
from mtprof_nb.capture.samples.thread_names import name_of_native_thread
from mtprof_nb.capture.torch_facts.fast_scopes import FastScope, with_inputs
from mtprof_nb.capture.torch_facts.garbage_collector import LivingObjects
from mtprof_nb.capture.torch_facts.optimizer_parameters import parameter_of, parameter_owners, updated_parameters
from mtprof_nb.model.device_facts import device_facts
from mtprof_nb.model.schema import TIMES
from mtprof_nb.model.trace import (
    OP,
    OPTIMIZER,
    SCOPE,
    Allocations,
    Bool,
    Columns,
    Int32,
    Trace,
    Track,
    Unrecorded,
    correlation_ids,
)

#: Values of torch's `RecordScope`, and the flag of the recorder for a scope that ended on another thread.
_OP_SCOPE, _BACKWARD_SCOPE, _USER_SCOPE = 0, 1, 7
_IS_ASYNC = 1
#: Torch's number of the device type that a backend in Python uses.
_PRIVATE_USE = 20
_OUT_OF_MEMORY = "there was not enough memory; free some, or record less (a schedule, fewer flags)"
_TYPES: dict[str, npt.DTypeLike] = {
    **dict.fromkeys(("start", "duration", "sequence_nr", "handle"), np.int64),
    **dict.fromkeys(("name", "form", "values", "stack", "forward_thread", "addresses", "extra", "thread"), np.int32),
    **dict.fromkeys(("scope", "flags", "device_type", "device_index"), np.int8),
    **dict.fromkeys(("block_time", "block_address", "block_nbytes", "block_total"), np.int64),
    **dict.fromkeys(("held_before", "held_after"), np.int64),
    **dict.fromkeys(("block_event", "block_thread", "block_stack"), np.int32),
    **NODE_TYPES,
}


@dataclass(frozen=True)
class Ended:
    """Facts that were noted as the recording ended."""

    thread_names: Mapping[int, str]
    #: Autograd's next sequence number, by native thread.
    counters: Mapping[int, int]
    fast_scopes: Sequence[FastScope] = ()


@collector_paused()
def build_trace(raw: Mapping[str, Any], objects: LivingObjects, request: Request, ended: Ended) -> Trace:
    """The trace of one window, from the recorder's columns and tables; `objects` are searched if need be."""
    columns = {**raw, **{name: np.frombuffer(raw[name], dtype) for name, dtype in _TYPES.items()}}
    recorded = request.recorded
    torch = objects.torch
    needs_stacks = recorded.with_stack or recorded.with_modules
    stacks = read_stacks(columns, objects if recorded.with_modules else None) if needs_stacks else None
    events = _host_events(columns, ended, request.clock.offset_ns)
    in_module = None if stacks is None else stacks.is_in_module[columns["stack"]]
    links = link(events, lambda rows: columns["forward_thread"][rows], ended.counters, in_module=in_module)
    made = _events(events, links, columns, request)
    if recorded.record_shapes or recorded.with_flops:
        made |= _inputs(made, columns, torch, request)
    if recorded.record_shapes:
        made |= with_inputs(made, ended.fast_scopes)
        made |= _parameters(made, events, columns, objects) | _devices_of_inputs(made, columns, torch)
    if len(columns["extras"]):
        found: Columns = {"extra": columns["extra"], "extras": tuple(columns["extras"])}
        made |= found | device_facts(made | found)
    if stacks is not None:
        made |= _python(stacks, links, columns, request)
    trace = Trace(**made, correlation_id=correlation_ids(made["kind"]))
    if not recorded.profile_memory:
        return trace
    stack = None if stacks is None or not recorded.with_stack else stacks.stack[columns["block_stack"]]
    return _with_memory(trace, columns, request.clock.offset_ns, stack)


def _host_events(columns: Columns, ended: Ended, offset_ns: int) -> HostEvents:
    name, names = _used(columns["name"], columns["names"])
    scope = columns["scope"]
    is_scope = scope == _USER_SCOPE
    outlives = (columns["flags"] & _IS_ASYNC > 0) & (scope != _OP_SCOPE) & (scope != _BACKWARD_SCOPE)
    events = HostEvents(
        name=name,
        names=names,
        start_ns=columns["start"] + offset_ns,
        duration_ns=columns["duration"],
        thread=columns["thread"],
        threads=tuple(
            Track(tid, ended.thread_names.get(tid) or name_of_native_thread(tid), number=number)
            for tid, number in columns["threads"]
        ),
        sequence_nr=columns["sequence_nr"],
        is_scope=is_scope,
        is_backward_node=scope == _BACKWARD_SCOPE,
        is_async=outlives,
        is_python=np.zeros(len(name), np.bool_),
    )
    return replace(events, is_async=outlives | events.crossing_scopes())


def _used(position: Any, table: list[Any]) -> tuple[Any, tuple[Any, ...]]:
    """`position` and `table` without the entries that no event has."""
    is_used = np.bincount(position[position >= 0], minlength=len(table)) > 0
    if is_used.all():
        return position, tuple(table)
    moved = np.append(np.cumsum(is_used, dtype=np.int32) - 1, np.int32(-1))
    return moved[position], tuple(entry for entry, used in zip(table, is_used.tolist(), strict=True) if used)


def _events(events: HostEvents, links: NodeLinks, columns: Columns, request: Request) -> Columns:
    """The columns that every recording has."""
    count = len(events)
    made: Columns = {
        "name": events.name,
        "kind": np.where(events.is_scope, np.int8(SCOPE), np.int8(OP)),
        "device": np.zeros(count, np.int8),
        "device_index": np.zeros(count, np.int8),
        "start_ns": events.start_ns,
        "duration_ns": events.duration_ns,
        "track": events.thread,
        "phase": links.phase,
        "sequence_nr": events.sequence_nr,
        "forward": links.forward,
        "step": np.zeros(count, np.int32),
        "is_async": events.is_async,
        "names": events.names,
        "devices": ("CPU",),
        "tracks": events.threads,
        "processes": (this_process(),),
        "recorded": request.recorded,
        "dropped": columns["dropped"],
    }
    if columns["until"] < TIMES.limit:
        until_ns = columns["until"] + request.clock.offset_ns
        reason = _OUT_OF_MEMORY if columns["is_out_of_memory"] else full(request.max_events)
        made["unrecorded"] = (Unrecorded(until_ns, until_ns, reason),)
    if request.has_execution_trace:
        made["record_function"] = columns["handle"]
    return made | {"phase": with_closures(made)}


def _inputs(made: Columns, columns: Columns, torch: Any, request: Request) -> Columns:
    form, forms = _used(columns["form"], columns["forms"])
    values, texts = _used(columns["values"], columns["value_texts"])
    shapes, dtypes, strides = zip(*forms, strict=True) if forms else ((), (), ())
    found: Columns = {}
    if request.recorded.with_flops:
        found["flops"] = flops_by_inputs(torch, made, Inputs(form, shapes, dtypes), (values, texts))
    if request.recorded.record_shapes:
        # A scope has inputs only where it was given some.
        has_any = (made["kind"] == OP) | np.array([*map(bool, shapes), False])[form]
        found |= {"shape": np.where(has_any, form, np.int32(-1)), "shapes": shapes, "dtypes": dtypes}
        found |= {"strides": strides, "values": values, "value_texts": texts}
    return found


def _parameters(made: Columns, events: HostEvents, columns: Columns, objects: LivingObjects) -> Columns:
    rows = np.flatnonzero((made["phase"] == OPTIMIZER) & (made["kind"] == OP))
    rows = rows[np.argsort(made["track"][rows], kind="stable")]
    parameter = np.full(len(events), -1, np.int32)
    if not len(rows):
        return {"parameter": parameter}
    owners = parameter_owners(objects)
    known = [parameter_of(addresses, owners) for addresses in columns["address_lists"]]
    own = np.array([*known, None], object)[columns["addresses"][rows]]
    ops = ThreadIntervals(events.start_ns[rows], events.end_ns[rows], made["track"][rows])
    parameter[rows], names = updated_parameters(ops, own.__getitem__)
    return {"parameter": parameter, "parameters": names}


def _devices_of_inputs(made: Columns, columns: Columns, torch: Any) -> Columns:
    """The device of each op's tensors, for a backend made in Python."""
    is_there: Bool = (columns["device_type"] == _PRIVATE_USE) & (made["kind"] == OP)
    if not is_there.any():
        return {}
    return {
        "devices": ("CPU", device_type_name(torch._C._get_privateuse1_backend_name())),
        "device": is_there.astype(np.int8),
        "device_index": np.where(is_there, columns["device_index"], np.int8(0)),
    }


def _python(stacks: NativeStacks, links: NodeLinks, columns: Columns, request: Request) -> Columns:
    """Stacks and modules. In the backward pass an op without Python of its own has those of its forward op."""
    own = columns["stack"]
    of_forward = (links.forward >= 0) & (own == own[links.node])
    shown = np.where(of_forward, own[links.forward], own)
    made: Columns = {}
    if request.recorded.with_modules:
        made |= {"module": stacks.module[shown], "modules": stacks.modules}
    if request.recorded.with_stack:
        made |= {"stack": stacks.stack[shown], "stacks": stacks.tree, "stack_is_forward": of_forward}
    return made


def _with_memory(trace: Trace, columns: Columns, offset_ns: int, stack: Int32 | None) -> Trace:
    count = len(columns["block_time"])
    records = Allocations(
        time_ns=columns["block_time"] + offset_ns,
        nbytes=columns["block_nbytes"],
        total=columns["block_total"],
        address=columns["block_address"],
        event=columns["block_event"],
        track=columns["block_thread"],
        device=np.zeros(count, np.int8),
        device_index=np.zeros(count, np.int8),
        stack=stack,
    )
    before, after = columns["held_before"], columns["held_after"]
    if trace.device.any():  # of ops on other devices no memory is noted: they hold nothing
        before, after = (np.where(trace.device == 0, held, 0) for held in (before, after))
    return replace(trace, allocations=records, memory_before=before, memory_after=after)
