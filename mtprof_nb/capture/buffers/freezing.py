"""Makes a `Trace` of the records of a Python hook. An optional column is made only where its flag is on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import CodeType
from typing import Any

import numpy as np

from mtprof_nb.building.allocator_records import with_readings
from mtprof_nb.building.autograd_nodes import NodeLinks
from mtprof_nb.building.closures import OF_OPTIMIZER
from mtprof_nb.building.interning import describe, intern
from mtprof_nb.building.paused_collector import collector_paused
from mtprof_nb.building.phases import phases
from mtprof_nb.building.recorded_events import RecordedEvents
from mtprof_nb.building.trace_builder import build
from mtprof_nb.capture.buffers.autograd_links import Links, no_links
from mtprof_nb.capture.buffers.buffer import Buffer
from mtprof_nb.capture.buffers.buffered_rows import Rows, read_rows
from mtprof_nb.capture.distributed import this_process
from mtprof_nb.capture.hook import full
from mtprof_nb.capture.samples import python_stacks as stacks
from mtprof_nb.model.trace import BACKWARD, OP, SCOPE, Bool, Columns, Trace, Unrecorded


@dataclass(frozen=True)
class Vocabulary:
    """Functions that describe a runtime's objects, called once for each object when the recording is over."""

    #: (name, overload) of the object that a hook recorded as `name`.
    name: Callable[[Any], tuple[str, str]] = lambda raw: (str(raw), "")
    #: (device type, index) of the object that it recorded as `device`.
    device: Callable[[Any], tuple[str, int]] = lambda raw: (str(raw), 0)
    dtype: Callable[[Any], str] = str
    link: Callable[[Rows], Links] = no_links
    #: Whether a frame of this code runs the backward pass.
    is_engine: Callable[[CodeType], bool] = lambda _code: False
    #: Whether a frame of this code calls a module.
    is_module: Callable[[CodeType], bool] = lambda _code: False
    #: The folder of the runtime's own Python.
    folder: str = "<none>"


def freeze(buffer: Buffer, vocabulary: Vocabulary) -> Trace:
    """Close `buffer` and make a trace of its records."""
    trace = _freeze(buffer, vocabulary, buffer.close())
    buffer.threads.clear()
    return trace


@collector_paused()
def _freeze(buffer: Buffer, vocabulary: Vocabulary, dropped: int) -> Trace:
    rows = read_rows(buffer)
    node_links = vocabulary.link(rows)
    events, facts = _recorded_events(rows, node_links, vocabulary, buffer.request.clock.offset_ns)
    frozen = _frozen_stacks(rows, vocabulary) if "stack" in rows.ops else None
    module, modules = intern(rows.ops.get("module", []))
    module = rows.of_ops(module, -1) if "module" in rows.ops else np.full(len(rows), -1, np.int32)
    in_module = module >= 0 if frozen is None else (module >= 0) | rows.of_all(frozen.is_in_module)
    events, links = _linked(events, rows, node_links, in_module)
    facts |= _recording(buffer, dropped) | _facts(rows, vocabulary)
    if frozen is not None:
        facts |= _stacks(rows, links, frozen)
    if "module" in rows.ops:
        takes = _takes_from_forward(links, module >= 0)
        facts |= {"module": np.where(takes, module[links.forward], module), "modules": modules}
    trace = build(events, links, facts)
    if "before" not in rows.ops:
        return trace
    return with_readings(trace, *(rows.of_ops(np.array(rows.ops[side], np.int64), -1) for side in ("before", "after")))


def _recorded_events(
    rows: Rows, links: Links, vocabulary: Vocabulary, offset_ns: int
) -> tuple[RecordedEvents, Columns]:
    """The events, and the facts that describe ops: their overloads and devices."""
    op_name, op_names = describe(rows.ops["name"], vocabulary.name)
    scope_name, scope_names = intern(rows.scopes["name"])
    position, names = intern([*(name for name, _ in op_names), *scope_names])
    facts = _devices(rows, vocabulary)
    overload, overloads = intern([overload or None for _, overload in op_names])
    if overloads:
        facts |= {"overload": rows.of_ops(overload[op_name], -1), "overloads": overloads}
    events = RecordedEvents(
        name=rows.of_all(position[np.append(op_name, len(op_names) + scope_name)]),
        names=names,
        kind=np.where(rows.is_op, np.int8(OP), np.int8(SCOPE)),
        start_ns=rows.start + offset_ns,
        duration_ns=rows.end - rows.start,
        thread=rows.thread,
        threads=tuple(thread.track for thread in rows.threads),
        sequence_nr=links.sequence_nr,
        is_backward_node=np.zeros(len(rows), np.bool_),
        is_async=rows.of_scopes(rows.scopes["is_async"]),
    )
    return events, facts


def _recording(buffer: Buffer, dropped: int) -> Columns:
    """Facts of the whole recording."""
    request, offset = buffer.request, buffer.request.clock.offset_ns
    facts: Columns = {
        "recorded": request.recorded,
        "began_ns": buffer.began + offset,
        "ended_ns": buffer.ended + offset,
        "processes": (this_process(),),
        "trace_id": request.trace_id,
        "dropped": dropped,
    }
    if buffer.full_ns:
        facts["unrecorded"] = (Unrecorded(buffer.full_ns + offset, facts["ended_ns"], full(buffer.limit)),)
    return facts


def _facts(rows: Rows, vocabulary: Vocabulary) -> Columns:
    """The facts that were asked for, as far as the hook records them."""
    facts: Columns = {}
    if "shapes" in rows.ops:
        facts |= _shapes(rows, vocabulary)
    if "flops" in rows.ops:
        facts["flops"] = rows.of_ops(np.array(rows.ops["flops"], np.int64), -1)
    return facts


def _frozen_stacks(rows: Rows, vocabulary: Vocabulary) -> stacks.FrozenStacks:
    entries = rows.ops["stack"] + rows.scopes["stack"]
    return stacks.freeze_stacks(entries, vocabulary.is_engine, vocabulary.is_module, vocabulary.folder)


def _devices(rows: Rows, vocabulary: Vocabulary) -> Columns:
    op_device, devices = describe(rows.ops["device"], vocabulary.device)
    position, types = intern(["CPU", *(kind for kind, _ in devices)])
    index = np.array([index for _, index in devices], np.int8)
    return {
        "device": rows.of_ops(position[1:][op_device], 0),
        "device_index": rows.of_ops(index[op_device], 0),
        "devices": types,
    }


def _linked(events: RecordedEvents, rows: Rows, links: Links, in_module: Bool) -> tuple[RecordedEvents, NodeLinks]:
    """The links of events with phases, and the events with the numbers of these links.

    A step may run inside a node (in a hook), and a backward pass inside a step (in a closure): the
    inner one counts.
    """
    step = rows.innermost(events.scopes_of(OF_OPTIMIZER))
    is_of_step = links.is_backward & (step >= 0) & (links.running == links.running[step])
    recorded = _recorded_by_autograd(rows, links)
    phase = phases(events, recorded, links.is_backward & ~is_of_step, step >= 0, in_module)
    forward = np.where(is_of_step, np.int32(-1), links.forward)
    events = replace(events, sequence_nr=np.where(is_of_step, -1, links.sequence_nr))
    return events, NodeLinks(phase, forward, np.full(len(rows), -1, np.int32))


def _recorded_by_autograd(rows: Rows, links: Links) -> Bool:
    """Ops for which autograd made a node, and all ops around and inside them."""
    made: Bool = (links.sequence_nr >= 0) & ~links.is_backward & rows.is_op
    with_autograd = rows.of_ops(np.array(rows.ops.get("grad", [True] * len(rows.ops["name"])), np.bool_), True)
    for here in rows.by_thread(rows.is_op):
        made[here] = _with_functions(made[here], ~with_autograd[here] & ~links.is_backward[here])
    return rows.spread(rows.is_op, made)


def _with_functions(made: Bool, is_without: Bool) -> Bool:
    """`made`, and the ops that follow a made node with autograd off: so runs the forward of an `autograd.Function`."""
    began = np.maximum.accumulate(np.where(~is_without, np.arange(len(made)), -1))
    last_made = np.maximum.accumulate(np.where(made, np.arange(len(made)), -1))
    inside: Bool = made | (is_without & (last_made > began))
    return inside


def _shapes(rows: Rows, vocabulary: Vocabulary) -> Columns:
    dtypes: dict[Any, str] = {}

    def read(raw: tuple[tuple[Any, Any], ...]) -> tuple[Any, tuple[str, ...]]:
        for _, dtype in raw:
            if dtype not in dtypes:
                dtypes[dtype] = "" if dtype is None else vocabulary.dtype(dtype)
        return tuple(_plain(shape) for shape, _ in raw), tuple(dtypes[dtype] for _, dtype in raw)

    # Equal shapes first: every op has its own copy.
    shape, distinct = intern(rows.ops["shapes"])
    described, table = intern([read(raw) for raw in distinct])
    return {
        "shape": rows.of_ops(described[shape] if distinct else shape, -1),
        "shapes": tuple(shapes for shapes, _ in table),
        "dtypes": tuple(types for _, types in table),
    }


def _plain(shape: Any) -> tuple[Any, ...]:
    """A runtime's sizes as tuples and integers."""
    return tuple(_plain(size) if isinstance(size, tuple | list) else int(size) for size in shape)


def _stacks(rows: Rows, links: NodeLinks, frozen: stacks.FrozenStacks) -> Columns:
    own, has_own = rows.of_all(frozen.stack), rows.of_all(frozen.has_own_backward)
    of_forward = _takes_from_forward(links, has_own)
    # The forward op may itself be of a backward pass, and take the stack of its own forward op.
    source = links.forward.copy()
    while (again := of_forward & of_forward[source] & (links.forward[source] >= 0)).any():
        source[again] = links.forward[source[again]]
    return {
        "stack": np.where(of_forward, own[source], own),
        "stacks": frozen.tree,
        "stack_is_forward": of_forward,
        "is_python_backward": has_own & rows.is_op & (links.phase == BACKWARD),
    }


def _takes_from_forward(links: NodeLinks, has_own: Bool) -> Bool:
    """Ops of the backward pass without a stack or module of their own: they take that of their forward op."""
    takes: Bool = (links.phase == BACKWARD) & (links.forward >= 0) & ~has_own
    return takes
