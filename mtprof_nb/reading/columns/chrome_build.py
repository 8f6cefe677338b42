"""Makes a `Trace` of the collected events of a Chrome trace."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from mtprof_nb.building.allocator_records import with_own_memory
from mtprof_nb.building.closures import with_closures
from mtprof_nb.building.interning import intern, used_entries
from mtprof_nb.model.collective_calls import SCOPES_OF_COLLECTIVES
from mtprof_nb.model.device_facts import device_facts
from mtprof_nb.model.schema import Columns, Int32
from mtprof_nb.model.trace import (
    COLLECTIVE,
    OP,
    PYTHON,
    RUNTIME,
    SCOPE,
    Collective,
    StackInterner,
    Trace,
    correlation_ids,
)
from mtprof_nb.reading.columns.chosen_spans import ChosenSpans
from mtprof_nb.reading.columns.file_inputs import shape_columns, value_columns
from mtprof_nb.reading.columns.file_memory import allocations, collections
from mtprof_nb.reading.columns.file_stacks import PythonRows, text_stacks
from mtprof_nb.reading.columns.forward_flows import phase_columns, steps
from mtprof_nb.reading.columns.recording_facts import recording_facts, tally_notes
from mtprof_nb.reading.spans.descriptions import base_ns


def build(file: ChosenSpans, notes: list[str]) -> Trace:
    """The trace of one file, with `notes` of its reading."""
    made = _events(file)
    made |= _devices(file, made)
    made |= _inputs(file)
    made |= _python(file, made)
    if len(file.collector.allocations):
        track = np.append(file.host_tracks, -1)[file.collector.allocations.whole("lane")]
        made |= allocations(file.collector.allocations, track, made)
    made |= recording_facts(file, made)
    made["notes"] = (*notes, *made.pop("stack_notes", ()), *tally_notes(file.tally))
    del made["node"]
    moved = base_ns(file.document)
    made["start_ns"] = made["start_ns"] + moved
    if "allocations" in made:
        made["allocations"] = replace(made["allocations"], time_ns=made["allocations"].time_ns + moved)
    if len(file.collector.collections):
        track = np.append(file.host_tracks, -1)[file.collector.collections.whole("lane")]
        made["collections"] = collections(file.collector.collections, track, moved)
    return with_own_memory(Trace(**made, correlation_id=correlation_ids(made["kind"])))


def _events(file: ChosenSpans) -> Columns:
    """The columns that every recording has, and `node`."""
    made: Columns = {
        "name": file.name,
        "names": file.names,
        "kind": file.kind,
        "start_ns": file.spans["start_ns"],
        "duration_ns": file.spans["duration_ns"],
        "track": file.tracks.track,
        "sequence_nr": file.sequence_nr,
        "step": steps(file.spans["start_ns"], file.kind, file.name, file.names, file.process),
        **phase_columns(file),
    }
    if "record_function" in file.spans and (file.spans["record_function"] > 0).any():
        made["record_function"] = np.maximum(file.spans["record_function"], 0)
    return made | {"phase": with_closures(made)}


def _devices(file: ChosenSpans, made: Columns) -> Columns:
    """Devices, launches, and the metadata of events on devices."""
    found: Columns = {
        "device": file.on_device.astype(np.int8),
        "devices": ("CPU", file.device_name) if file.on_device.any() else ("CPU",),
        "device_index": file.tracks.device_index,
    }
    if not (file.on_device | (file.kind == RUNTIME)).any():
        return found
    linked = file.dialect.launches(file)
    launcher: Int32 = linked["launcher"]
    found |= linked | {"phase": np.where(launcher >= 0, made["phase"][launcher], made["phase"])}
    found |= _extras(file)
    found |= device_facts(made | found)
    return found | _named_by_scopes(file, made | found)


def _named_by_scopes(file: ChosenSpans, made: Columns) -> Columns:
    """Facts of collectives for kernels that tell none, as in older recordings, from the scope open at their launch."""
    known = made.get("collective")
    collective = np.full(len(file), -1, np.int32) if known is None else known
    rows = np.flatnonzero((made["kind"] == COLLECTIVE) & (collective < 0) & (made["launch"] >= 0))
    is_scope = np.array([name.startswith(SCOPES_OF_COLLECTIVES) for name in file.names] or [False], np.bool_)[file.name]
    is_scope &= file.kind == SCOPE
    if not len(rows) or not is_scope.any():
        return {}
    calls = made["launch"][rows]
    scopes = file.intervals.running(is_scope, file.tracks.track[calls], file.spans["start_ns"][calls])
    table = {one: place for place, one in enumerate(made["collectives"])}
    found = collective.copy()
    for row, scope in zip(rows.tolist(), scopes.tolist(), strict=True):
        if scope >= 0:
            name = file.names[file.name[scope]].partition(":")[2]
            found[row] = table.setdefault(Collective(name), len(table))
    return {"collective": found, "collectives": tuple(table)}


def _extras(file: ChosenSpans) -> Columns:
    rest = np.where(file.has_extras, file.rest, np.int32(-1))
    rest, texts = _in_words_of_kineto(file, rest, file.collector.facts.rests)
    used, place = used_entries(rest, len(texts))
    extra, extras = intern([texts[one] for one in used.tolist()])
    return {"extra": np.append(extra, np.int32(-1))[place], "extras": extras} if extras else {}


def _in_words_of_kineto(file: ChosenSpans, rest: Int32, texts: list[str]) -> tuple[Int32, list[str]]:
    """The members of each span, those of collectives under Kineto's keys."""
    rest, texts = rest.copy(), list(texts)
    for row in np.flatnonzero((file.kind == COLLECTIVE) & (rest >= 0)).tolist():
        said = file.dialect.extras(file.names[file.name[row]], json.loads(texts[rest[row]]))
        rest[row] = len(texts)
        texts.append(json.dumps(said))
    return rest, texts


def _inputs(file: ChosenSpans) -> Columns:
    """Shapes and values of the inputs of ops and scopes."""
    found: Columns = {}
    has_inputs = (file.kind == OP) | (file.kind == SCOPE)
    texts = file.collector.facts.texts
    if "shape" in file.spans:
        # An op without inputs has no members for them.
        of_op = np.where(file.kind == OP, len(texts["shape"]), -1)
        shape = file.spans["shape"]
        positions = np.where(has_inputs & (shape >= 0), shape, of_op)
        found |= shape_columns(positions, [*texts["shape"], (b"", b"", b"")])
    keywords = np.where(has_inputs & ~file.has_extras, file.rest, -1)
    inputs = np.where(has_inputs, file.spans["inputs"], -1)
    return found | value_columns(inputs, list(texts.get("inputs", ())), keywords, file.collector.facts.rests)


def _python(file: ChosenSpans, made: Columns) -> Columns:
    """Stacks and modules, from Python calls or from texts."""
    found: Columns = {}
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
        began = np.where(running >= 0, made["start_ns"][running], np.iinfo(np.int64).min)
        node_start = np.where(made["node"] >= 0, made["start_ns"][made["node"]], np.iinfo(np.int64).min)
        of_forward = (made["forward"] >= 0) & (began < node_start) & on_host
        stack = np.where(of_forward, stack[made["forward"]], stack)
        within, paths = calls.modules(file.names)
        if paths:
            module = np.where(is_python, within, np.where(on_host & (running >= 0), within[running], -1))
            module = np.where(of_forward, module[made["forward"]], module)
            number, table = intern(paths)
            found |= {"module": np.where(module >= 0, number[module], -1), "modules": table}
    found |= _told_modules(file)
    is_called = stack >= 0
    for fact in ("call_stack", "frames"):
        if fact in file.spans:
            nodes = text_stacks(file.collector.facts.texts[fact], interner)
            told = np.array([*nodes, -1], np.int32)[file.spans[fact]]
            stack = np.where(told >= 0, told, stack)
            of_forward &= told < 0
            is_called &= told < 0
            # A file may have the stack of the forward op for an op of its backward.
            of_forward |= (told >= 0) & (made["forward"] >= 0) & (told == told[made["forward"]])
    if (on_host & is_called).any():
        found["stack_notes"] = ["Lines in stacks are those of `def`: the file has no others."]
    if (stack >= 0).any() or is_python.any():
        found |= {"stack": stack, "stacks": interner.tree(), "stack_is_forward": of_forward & (stack >= 0)}
    return found


def _told_modules(file: ChosenSpans) -> Columns:
    """Modules that the events themselves tell."""
    if "module" not in file.spans:
        return {}
    table: dict[str, int] = {}
    texts = file.collector.facts.texts["module"]
    numbers = [table.setdefault(path, len(table)) if isinstance(path, str) and path else -1 for path in texts]
    module = np.array([*numbers, -1], np.int32)[file.spans["module"]]
    return {"module": module, "modules": tuple(table)} if table else {}
