"""Makes a `Trace` of the collected events of a Chrome trace."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from mtprof_nb.building.allocator_records import UnownedRecords, with_own_memory
from mtprof_nb.building.autograd_nodes import NodeLinks
from mtprof_nb.building.interning import intern, used_part
from mtprof_nb.building.trace_builder import build
from mtprof_nb.model.collective_calls import SCOPES_OF_COLLECTIVES
from mtprof_nb.model.device_facts import DEVICE_TYPES
from mtprof_nb.model.schema import TIMES, Columns, Int32
from mtprof_nb.model.trace import (
    COLLECTIVE,
    OP,
    PYTHON,
    RUNTIME,
    SCOPE,
    Allocations,
    Collections,
    Collective,
    StackInterner,
    Trace,
)
from mtprof_nb.reading.columns.chosen_spans import ChosenSpans
from mtprof_nb.reading.columns.file_inputs import shape_columns, value_columns
from mtprof_nb.reading.columns.file_stacks import PythonRows, text_stacks
from mtprof_nb.reading.columns.file_tracks import device_indices
from mtprof_nb.reading.columns.forward_flows import linked_events, step_numbers
from mtprof_nb.reading.columns.recording_facts import recording_facts
from mtprof_nb.reading.spans.descriptions import base_of


def build_trace(file: ChosenSpans, notes: list[str]) -> Trace:
    """The trace of one file, with `notes` of its reading."""
    moved_ns = base_of(file.document)
    events, links = linked_events(file)
    facts: Columns = {"step": step_numbers(file), **_devices(file), **_inputs(file), **_python(file, links)}
    if ((numbers := file.spans["record_function"]) > 0).any():
        facts["record_function"] = np.maximum(numbers, 0)
    facts |= recording_facts(file, facts)
    left_out = [f"{what}: {count:,}." for what, count in sorted(file.tally.items()) if count > 0]
    facts["notes"] = (*notes, *facts.pop("stack_notes", ()), *left_out)
    if len(file.collector.collections):
        facts["collections"] = _collections(file, moved_ns)
    records = _unowned_records(file, moved_ns) if len(file.collector.allocations) else None
    events = replace(events, start_ns=events.start_ns + moved_ns)
    return with_own_memory(_named_by_scopes(file, build(events, links, facts, records=records)))


def _devices(file: ChosenSpans) -> Columns:
    """Devices, launches, and the metadata of events on devices."""
    columns: Columns = {
        "device": file.on_device.astype(np.int8),
        "devices": ("CPU", file.device_name) if file.on_device.any() else ("CPU",),
        "device_index": file.tracks.device_index,
    }
    has_devices = (file.on_device | (file.kind == RUNTIME)).any()
    return columns | file.dialect.launches(file) | _extras(file) if has_devices else columns


def _named_by_scopes(file: ChosenSpans, trace: Trace) -> Trace:
    """`trace` with facts of collectives without any, as in older files, from the scope open at their launch."""
    known = np.full(len(trace), -1, np.int32) if trace.collective is None else trace.collective
    is_scope = (trace.kind == SCOPE) & trace.where_name(lambda name: name.startswith(SCOPES_OF_COLLECTIVES))
    if trace.launch is None or not is_scope.any():
        return trace
    rows = np.flatnonzero((trace.kind == COLLECTIVE) & (known < 0) & (trace.launch >= 0))
    calls = trace.launch[rows]
    scopes = file.intervals.running(is_scope, trace.track[calls], file.spans["start_ns"][calls])
    table = {one: place for place, one in enumerate(trace.collectives)}
    collective = known.copy()
    for row, scope in zip(rows.tolist(), scopes.tolist(), strict=True):
        if scope >= 0:
            name = trace.names[trace.name[scope]].partition(":")[2]
            collective[row] = table.setdefault(Collective(name), len(table))
    return replace(trace, collective=collective, collectives=tuple(table)) if len(rows) else trace


def _extras(file: ChosenSpans) -> Columns:
    rest = np.where(file.has_extras, file.rest, np.int32(-1))
    rest, texts = _in_words_of_kineto(file, rest, file.collector.facts.rests)
    place, used = used_part(rest, texts)
    extra, extras = intern(used)
    return {"extra": np.append(extra, np.int32(-1))[place], "extras": extras} if extras else {}


def _in_words_of_kineto(file: ChosenSpans, rest: Int32, texts: list[str]) -> tuple[Int32, list[str]]:
    """The metadata of each span; that of collectives under Kineto's keys."""
    rest, texts = rest.copy(), list(texts)
    for row in np.flatnonzero((file.kind == COLLECTIVE) & (rest >= 0)).tolist():
        members = file.dialect.extras(file.names[file.name[row]], json.loads(texts[rest[row]]))
        rest[row] = len(texts)
        texts.append(json.dumps(members))
    return rest, texts


def _inputs(file: ChosenSpans) -> Columns:
    """Shapes and values of the inputs of ops and scopes."""
    columns: Columns = {}
    has_inputs = (file.kind == OP) | (file.kind == SCOPE)
    texts = file.collector.facts.texts
    if "shape" in file.spans:
        # An op without inputs has no members for them.
        of_op = np.where(file.kind == OP, len(texts["shape"]), -1)
        shape = file.spans["shape"]
        positions = np.where(has_inputs & (shape >= 0), shape, of_op)
        columns |= shape_columns(positions, [*texts["shape"], (b"", b"", b"")])
    keywords = np.where(has_inputs & ~file.has_extras, file.rest, -1)
    inputs = np.where(has_inputs, file.spans["inputs"], -1)
    return columns | value_columns(inputs, list(texts.get("inputs", ())), keywords, file.collector.facts.rests)


def _python(file: ChosenSpans, links: NodeLinks) -> Columns:
    """Stacks and modules, from Python calls or from texts."""
    columns: Columns = {}
    is_python = file.kind == PYTHON
    interner = StackInterner()
    stack = np.full(len(file), -1, np.int32)
    on_host = ~file.on_device & ~is_python
    of_forward = np.zeros(len(file), np.bool_)
    if is_python.any():
        own, caller = (file.within_processes(file.spans[fact]) for fact in ("python_id", "python_parent"))
        calls = PythonRows.of(is_python, file.intervals, own, caller, file.name)
        outside, inside = calls.stacks(file.names, interner)
        running = np.full(len(file), -1, np.int64)
        running[on_host] = calls.running(np.flatnonzero(on_host))
        stack = np.where(is_python, outside, np.where(on_host & (running >= 0), inside[running], -1))
        start_ns = file.spans["start_ns"]
        began_ns = np.where(running >= 0, start_ns[running], np.iinfo(np.int64).min)
        of_forward = links.lacking_python(began_ns, start_ns) & on_host
        stack = np.where(of_forward, stack[links.forward], stack)
        within, paths = calls.modules(file.names)
        if paths:
            module = np.where(is_python, within, np.where(on_host & (running >= 0), within[running], -1))
            module = np.where(of_forward, module[links.forward], module)
            number, table = intern(paths)
            columns |= {"module": np.where(module >= 0, number[module], -1), "modules": table}
    columns |= _given_modules(file)
    is_called = stack >= 0
    for fact in ("call_stack", "frames"):
        if fact in file.spans:
            nodes = text_stacks(file.collector.facts.texts[fact], interner)
            given = np.array([*nodes, -1], np.int32)[file.spans[fact]]
            stack = np.where(given >= 0, given, stack)
            of_forward &= given < 0
            is_called &= given < 0
            # A file may have the stack of the forward op for an op of its backward.
            of_forward |= (given >= 0) & (links.forward >= 0) & (given == given[links.forward])
    if (on_host & is_called).any():
        columns["stack_notes"] = ["Lines in stacks are those of `def`: the file has no others."]
    if (stack >= 0).any() or is_python.any():
        columns |= {"stack": stack, "stacks": interner.tree(), "stack_is_forward": of_forward & (stack >= 0)}
    return columns


def _given_modules(file: ChosenSpans) -> Columns:
    """Modules that the events themselves name."""
    if "module" not in file.spans:
        return {}
    table: dict[str, int] = {}
    texts = file.collector.facts.texts["module"]
    numbers = [table.setdefault(path, len(table)) if isinstance(path, str) and path else -1 for path in texts]
    module = np.array([*numbers, -1], np.int32)[file.spans["module"]]
    return {"module": module, "modules": tuple(table)} if table else {}


def _unowned_records(file: ChosenSpans, moved_ns: int) -> UnownedRecords:
    """The allocator's records in order of time, later by `moved_ns`. Totals go on from before the recording."""
    records = file.collector.allocations
    order = np.argsort(records.whole("at_ns"), kind="stable")
    facts = ("at_ns", "nbytes", "total", "address", "device_number", "device_index", "reserved", "lane")
    at_ns, nbytes, total, address, device_number, index, reserved, lane = (records.whole(fact)[order] for fact in facts)
    distinct, device = np.unique(device_number, return_inverse=True)
    allocations = Allocations(
        time_ns=at_ns + moved_ns,
        nbytes=nbytes,
        total=total,
        # Recordings of 2021 have no addresses.
        address=np.maximum(address, 0),
        event=np.full(len(order), -1, np.int32),
        track=file.host_tracks[lane],
        device=device.astype(np.int8),
        device_index=device_indices(index),
        reserved=reserved if (reserved > 0).any() else None,
    )
    return UnownedRecords(allocations, [DEVICE_TYPES.get(number, "other device") for number in distinct.tolist()])


def _collections(file: ChosenSpans, moved_ns: int) -> Collections:
    """The collections in order of time, later by `moved_ns`."""
    collected = file.collector.collections
    rows = Collections(
        start_ns=collected.whole("start_ns") + moved_ns,
        duration_ns=collected.whole("duration_ns").clip(0, TIMES.limit - 1),
        generation=collected.whole("generation").clip(0, 2),
        track=file.host_tracks[collected.whole("lane")],
    )
    return rows.take(np.argsort(rows.start_ns, kind="stable"))
