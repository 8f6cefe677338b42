"""Makes a `Trace` of what the native recorder returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mtprof_nb.building.autograd_nodes import NodeLinks, link
from mtprof_nb.building.interning import used_part
from mtprof_nb.building.noted_scopes import NotedScope
from mtprof_nb.building.paused_collector import collector_paused
from mtprof_nb.building.recorded_events import RecordedEvents
from mtprof_nb.building.trace_builder import OwnParameters, build
from mtprof_nb.capture.activities import device_type_name
from mtprof_nb.capture.distributed import this_process
from mtprof_nb.capture.flops import Inputs, flops_by_inputs
from mtprof_nb.capture.hook import Request, full
from mtprof_nb.capture.living_objects import LivingObjects, parameter_of, parameter_owners
from mtprof_nb.capture.native.device_join import RecordedDevices, with_devices
from mtprof_nb.capture.native.native_stacks import NODE_TYPES, NativeStacks, read_stacks
from mtprof_nb.capture.samples.thread_names import name_of_native_thread
from mtprof_nb.capture.torch_private.process_state import private_backend_name
from mtprof_nb.model.schema import TIMES
from mtprof_nb.model.trace import (
    OP,
    SCOPE,
    Allocations,
    Columns,
    Int8,
    Int32,
    Int64,
    Recorded,
    Trace,
    Track,
    Unrecorded,
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
    **dict.fromkeys(("block_device_type", "block_device_index"), np.int8),
    **NODE_TYPES,
}


@collector_paused()
def build_native_trace(
    raw: Mapping[str, Any],
    objects: LivingObjects,
    request: Request,
    thread_names: Mapping[int, str],
    counters: Mapping[int, int],
    scopes: Sequence[NotedScope],
    devices: RecordedDevices | None = None,
) -> Trace:
    """The trace of one window, from the recorder's columns and tables; `objects` are searched if need be.

    `counters` has autograd's next sequence number, by native thread.
    """
    columns = {**raw, **{name: np.frombuffer(raw[name], dtype) for name, dtype in _TYPES.items()}}
    recorded = request.recorded
    needs_stacks = recorded.with_stack or recorded.with_modules
    stacks = read_stacks(columns, objects if recorded.with_modules else None) if needs_stacks else None
    columns["kind"] = np.where(columns["scope"] == _USER_SCOPE, np.int8(SCOPE), np.int8(OP))
    of_devices: Columns = {"tracks": _threads(columns, thread_names)}
    if devices is not None:
        columns, of_devices = with_devices(columns, devices, of_devices["tracks"])
    events = _recorded_events(columns, of_devices.pop("tracks"), request.clock.offset_ns)
    in_module = None if stacks is None else stacks.is_in_module[columns["stack"]]
    links = link(events, columns["forward_thread"].__getitem__, counters, in_module=in_module)
    known = of_devices.get("devices", ("CPU",))
    of_inputs = None
    if recorded.record_shapes:
        of_inputs = _devices_of_inputs(events, columns, objects.torch)
    return build(
        events,
        links,
        _recording(columns, request)
        | of_devices
        | _inputs(events, columns, objects.torch, recorded)
        | _python(stacks, links, columns, recorded, of_devices.get("launcher"))
        | _memory(columns, stacks if recorded.with_stack else None, of_inputs, known, request),
        scopes=scopes,
        own_parameters=_own_parameters(columns, objects) if recorded.record_shapes else None,
        input_devices=of_inputs,
    )


def _threads(columns: Columns, thread_names: Mapping[int, str]) -> tuple[Track, ...]:
    return tuple(
        Track(tid, thread_names.get(tid) or name_of_native_thread(tid), number=number)
        for tid, number, *_ in columns["threads"]
    )


def _recorded_events(columns: Columns, tracks: tuple[Track, ...], offset_ns: int) -> RecordedEvents:
    name, names = used_part(columns["name"], columns["names"])
    scope = columns["scope"]
    outlives = (columns["flags"] & _IS_ASYNC > 0) & (scope != _OP_SCOPE) & (scope != _BACKWARD_SCOPE)
    return RecordedEvents(
        name=name,
        names=names,
        kind=columns["kind"],
        start_ns=columns["start"] + offset_ns,
        duration_ns=columns["duration"],
        thread=columns["thread"],
        threads=tracks,
        sequence_nr=columns["sequence_nr"],
        is_backward_node=scope == _BACKWARD_SCOPE,
        is_async=outlives,
    )


def _recording(columns: Columns, request: Request) -> Columns:
    """Facts of the whole recording, metadata of collectives, and numbers of an execution trace."""
    facts: Columns = {
        "processes": (this_process(),),
        "recorded": request.recorded,
        "dropped": columns["dropped"],
    }
    if columns["until"] < TIMES.limit:
        until_ns = columns["until"] + request.clock.offset_ns
        reason = _OUT_OF_MEMORY if columns["is_out_of_memory"] else full(request.max_events)
        facts["unrecorded"] = (Unrecorded(until_ns, until_ns, reason),)
    if request.has_execution_trace:
        facts["record_function"] = columns["handle"]
    if len(columns["extras"]):
        facts |= {"extra": columns["extra"], "extras": tuple(columns["extras"])}
    return facts


def _inputs(events: RecordedEvents, columns: Columns, torch: Any, recorded: Recorded) -> Columns:
    if not (recorded.record_shapes or recorded.with_flops):
        return {}
    form, forms = used_part(columns["form"], columns["forms"])
    values, texts = used_part(columns["values"], columns["value_texts"])
    shapes, dtypes, strides = zip(*forms, strict=True) if forms else ((), (), ())
    facts: Columns = {}
    if recorded.with_flops:
        inputs = Inputs(form, shapes, dtypes)
        facts["flops"] = flops_by_inputs(torch, events, inputs, (values, texts))
    if recorded.record_shapes:
        facts |= {"shape": form, "shapes": shapes, "dtypes": dtypes, "strides": strides}
        facts |= {"values": values, "value_texts": texts}
    return facts


def _own_parameters(columns: Columns, objects: LivingObjects) -> OwnParameters:
    def own(rows: Int64) -> list[str | None]:
        owners = parameter_owners(objects)
        known = [*(parameter_of(addresses, owners) for addresses in columns["address_lists"]), None]
        return [known[addresses] for addresses in columns["addresses"][rows].tolist()]

    return own


def _devices_of_inputs(events: RecordedEvents, columns: Columns, torch: Any) -> tuple[str, Int8] | None:
    """The device type of a backend made in Python, and of each op's tensors the index, or -1."""
    is_there = (columns["device_type"] == _PRIVATE_USE) & events.is_op
    if not is_there.any():
        return None
    name = device_type_name(private_backend_name(torch))
    return name, np.where(is_there, np.maximum(columns["device_index"], 0), np.int8(-1))


def _python(
    stacks: NativeStacks | None,
    links: NodeLinks,
    columns: Columns,
    recorded: Recorded,
    launcher: Int32 | None,
) -> Columns:
    """Stacks and modules. In the backward pass, an op without Python has those of its forward op.

    What an op launched has those of that op.
    """
    if stacks is None:
        return {}
    own = columns["stack"]
    of_forward = (links.forward >= 0) & (own == own[links.node])
    shown = np.where(of_forward, own[links.forward], own)
    if launcher is not None:
        shown = np.where(launcher >= 0, shown[launcher], shown)
        of_forward = np.where(launcher >= 0, of_forward[launcher], of_forward)
    facts: Columns = {}
    if recorded.with_modules:
        facts |= {"module": stacks.module[shown], "modules": stacks.modules}
    if recorded.with_stack:
        facts |= {"stack": stacks.stack[shown], "stacks": stacks.tree, "stack_is_forward": of_forward}
    return facts


def _devices_of_blocks(types: Int8, known: tuple[str, ...]) -> tuple[Int8, tuple[str, ...]]:
    """For torch's numbers of device types, positions in the names that follow, `known` ones first."""
    if not types.any():
        return np.zeros(len(types), np.int8), known
    from torch.autograd import DeviceType

    numbers, place = np.unique(types, return_inverse=True)
    names = [device_type_name(DeviceType(number).name) for number in numbers.tolist()]
    known = tuple(dict.fromkeys((*known, *names)))
    return np.array([known.index(name) for name in names], np.int8)[place], known


def _memory(
    columns: Columns,
    stacks: NativeStacks | None,
    devices: tuple[str, Int8] | None,
    known: tuple[str, ...],
    request: Request,
) -> Columns:
    """The allocator's records, and the bytes that it held around each op."""
    if not request.recorded.profile_memory:
        return {}
    device, known = _devices_of_blocks(columns["block_device_type"], known)
    records = Allocations(
        time_ns=columns["block_time"] + request.clock.offset_ns,
        nbytes=columns["block_nbytes"],
        total=columns["block_total"],
        address=columns["block_address"],
        event=columns["block_event"],
        track=columns["block_thread"],
        device=device,
        device_index=columns["block_device_index"],
        stack=None if stacks is None else stacks.stack[columns["block_stack"]],
    )
    before, after = columns["held_before"], columns["held_after"]
    if devices is not None:  # of ops on other devices no memory is noted: they hold nothing
        before, after = (np.where(devices[1] >= 0, 0, held) for held in (before, after))
    facts: Columns = {"allocations": records, "memory_before": before, "memory_after": after}
    return facts | {"devices": known}
