"""Makes a `Trace` of the records of a Python hook. An optional column is made only where its flag is on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any

import numpy as np

from mtprof_nb.building.allocator_records import with_readings
from mtprof_nb.building.closures import OF_OPTIMIZER, with_closures
from mtprof_nb.building.interning import describe, intern
from mtprof_nb.building.paused_collector import collector_paused
from mtprof_nb.building.phases import OF_LOADER, phases, settled
from mtprof_nb.capture.buffers.autograd_links import Links, no_links
from mtprof_nb.capture.buffers.buffer import Buffer
from mtprof_nb.capture.buffers.buffered_rows import Rows, read_rows
from mtprof_nb.capture.distributed import this_process
from mtprof_nb.capture.hook import full
from mtprof_nb.capture.samples import python_stacks as stacks
from mtprof_nb.model.trace import (
    BACKWARD,
    OP,
    OPTIMIZER,
    SCOPE,
    STEP_PREFIX,
    Bool,
    Columns,
    Int8,
    Trace,
    Unrecorded,
    correlation_ids,
)


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
    links = vocabulary.link(rows)
    phase, undecided = _phase(rows, links)
    is_of_step = links.is_backward & (phase == OPTIMIZER)
    offset = buffer.request.clock.offset_ns
    kind = np.where(rows.is_op, np.int8(OP), np.int8(SCOPE))
    made: Columns = {
        **_names(rows, vocabulary),
        **_devices(rows, vocabulary),
        "kind": kind,
        "start_ns": rows.start + offset,
        "duration_ns": rows.end - rows.start,
        "track": rows.thread,
        "tracks": tuple(thread.track for thread in rows.threads),
        "phase": phase,
        "correlation_id": correlation_ids(kind),
        "sequence_nr": np.where(is_of_step, -1, links.sequence_nr),
        "forward": np.where(is_of_step, np.int32(-1), links.forward),
        "step": np.zeros(len(rows), np.int32),
        "is_async": _is_async(rows),
        "recorded": buffer.request.recorded,
        "began_ns": buffer.began + offset,
        "ended_ns": buffer.ended + offset,
        "processes": (this_process(),),
        "trace_id": buffer.request.trace_id,
        "dropped": dropped,
    }
    if buffer.full_ns:
        made["unrecorded"] = (Unrecorded(buffer.full_ns + offset, made["ended_ns"], full(buffer.limit)),)
    made["phase"] = with_closures(made)
    trace = Trace(**made | _facts(made, rows, vocabulary, undecided))
    if "before" not in rows.ops:
        return trace
    return with_readings(trace, *(rows.of_ops(np.array(rows.ops[side], np.int64), -1) for side in ("before", "after")))


def _facts(made: Columns, rows: Rows, vocabulary: Vocabulary, undecided: Bool) -> Columns:
    """The facts that were asked for, as far as the hook records them, and phases, for which modules are a fact."""
    found: Columns = {}
    is_in_module = np.zeros(len(rows), np.bool_)
    if "in_python" in rows.ops:
        in_python = rows.of_ops(np.array(rows.ops["in_python"], np.bool_), False)
        found["is_python_backward"] = in_python & (made["phase"] == BACKWARD)
    if "shapes" in rows.ops:
        found |= _shapes(rows, vocabulary)
    if "stack" in rows.ops:
        entries = rows.ops["stack"] + rows.scopes["stack"]
        frozen = stacks.freeze(entries, vocabulary.is_engine, vocabulary.is_module, vocabulary.folder)
        found |= _stacks(made, rows, frozen)
        is_in_module |= rows.of_all(frozen.is_in_module)
    if "flops" in rows.ops:
        found["flops"] = _flops(rows)
    if "module" in rows.ops:
        module, found["modules"] = intern(rows.ops["module"])
        module = rows.of_ops(module, -1)
        is_in_module |= module >= 0
        found["module"] = np.where(_takes_from_forward(made, module >= 0), module[made["forward"]], module)
    return found | {"phase": settled(made["phase"], undecided, is_in_module)}


def _names(rows: Rows, vocabulary: Vocabulary) -> Columns:
    op_name, op_names = describe(rows.ops["name"], vocabulary.name)
    scope_name, scope_names = intern(rows.scopes["name"])
    position, names = intern([*(name for name, _ in op_names), *scope_names])
    made: Columns = {"name": rows.of_all(position[np.append(op_name, len(op_names) + scope_name)]), "names": names}
    overload, overloads = intern([overload or None for _, overload in op_names])
    if overloads:
        made |= {"overload": rows.of_ops(overload[op_name], -1), "overloads": overloads}
    return made


def _devices(rows: Rows, vocabulary: Vocabulary) -> Columns:
    op_device, devices = describe(rows.ops["device"], vocabulary.device)
    position, types = intern(["CPU", *(kind for kind, _ in devices)])
    index = np.array([index for _, index in devices], np.int8)
    return {
        "device": rows.of_ops(position[1:][op_device], 0),
        "device_index": rows.of_ops(index[op_device], 0),
        "devices": types,
    }


def _phase(rows: Rows, links: Links) -> tuple[Int8, Bool]:
    """Phases, and the ops that are not decided yet; see `phases`."""
    recorded = _recorded_by_autograd(rows, links)
    in_loader = rows.inside(_is_scope_of(rows, OF_LOADER))
    step = rows.innermost(_is_scope_of(rows, OF_OPTIMIZER))
    # A step may run inside a node (in a hook), and a backward pass inside a step (in a closure): the inner one counts.
    is_inner = links.running == links.running[step]
    is_backward = links.is_backward & ~((step >= 0) & is_inner)
    return phases(rows.is_op, recorded, in_loader, is_backward, step >= 0)


def _is_scope_of(rows: Rows, prefix: str) -> Bool:
    return rows.of_scopes([name.startswith(prefix) for name in rows.scopes["name"]])


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


def _is_async(rows: Rows) -> Bool:
    """Scopes that ended on another thread, and scopes of one thread that cross, as those of interleaved tasks do."""
    found = rows.of_scopes(rows.scopes["is_async"])
    return found | rows.crossing(~rows.is_op & ~found & ~_is_scope_of(rows, STEP_PREFIX))


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


def _stacks(made: Columns, rows: Rows, found: stacks.FrozenStacks) -> Columns:
    own, forward = rows.of_all(found.stack), made["forward"]
    of_forward = _takes_from_forward(made, rows.of_all(found.has_own_backward))
    # The forward op may itself be of a backward pass, and take the stack of its own forward op.
    source = forward.copy()
    while (again := of_forward & of_forward[source] & (forward[source] >= 0)).any():
        source[again] = forward[source[again]]
    return {
        "stack": np.where(of_forward, own[source], own),
        "stacks": found.tree,
        "stack_is_forward": of_forward,
        "is_python_backward": rows.of_all(found.has_own_backward) & rows.is_op & (made["phase"] == BACKWARD),
    }


def _takes_from_forward(made: Columns, has_own: Bool) -> Bool:
    """Ops of the backward pass without a stack or module of their own: they take that of their forward op."""
    found: Bool = (made["phase"] == BACKWARD) & (made["forward"] >= 0) & ~has_own
    return found


def _flops(rows: Rows) -> Any:
    """Operations of each op. An op inside another one with a formula is counted by that."""
    flops = rows.of_ops(np.array(rows.ops["flops"], np.int64), -1)
    flops[rows.parents(flops >= 0) >= 0] = -1
    return flops
