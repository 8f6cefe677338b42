"""The one builder of a `Trace`, of events, links and facts, to which a hook or a reader translates its records.

Facts are fields of `Trace` by their names: those of the whole recording, and optional columns with
their tables. Some are completed:

- `launcher`: an event that an op launched has the phase of that op. Any other event on a device is
  forward, unless the recording is of training.
- `shape`: a scope has inputs only where it was given some.
- `flops`: an op inside another one with a count is counted by that.
- `extras`: the facts of collectives and copies are read from them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mtprof_nb.building.allocator_records import UnownedRecords, with_records
from mtprof_nb.building.autograd_nodes import NodeLinks
from mtprof_nb.building.closures import with_closures
from mtprof_nb.building.interning import intern
from mtprof_nb.building.noted_scopes import NotedScope, with_noted_inputs
from mtprof_nb.building.recorded_events import RecordedEvents
from mtprof_nb.building.thread_intervals import ThreadIntervals
from mtprof_nb.model.device_facts import device_facts
from mtprof_nb.model.trace import (
    BACKWARD,
    FORWARD,
    OP,
    OPTIMIZER,
    OTHER,
    Columns,
    Int8,
    Int64,
    Trace,
    correlation_ids,
    on_device,
)

#: For rows of events, the parameter that each one has among its inputs, or None.
OwnParameters = Callable[[Int64], Sequence[str | None]]


def build(
    events: RecordedEvents,
    links: NodeLinks,
    facts: Columns,
    *,
    scopes: Sequence[NotedScope] = (),
    own_parameters: OwnParameters | None = None,
    input_devices: tuple[str, Int8] | None = None,
    records: UnownedRecords | None = None,
) -> Trace:
    """The trace of `events`.

    `scopes` have inputs that were noted apart from the recording. `own_parameters` returns the parameters
    that ops of an optimizer have as inputs. `input_devices` has a type of device and for each event
    the index of the one that its inputs are on, or -1. `records` are the allocator's, where the
    recorder does not know which event made each.
    """
    made = _columns(events, links) | facts
    del facts  # so that a column which is completed below is freed
    made |= _phases(made)
    made |= _inputs(made, events)
    made |= with_noted_inputs(made, scopes)
    if own_parameters is not None:
        made |= _updated_parameters(made, events.intervals, own_parameters)
    if input_devices is not None:
        made |= _on_devices(made, *input_devices)
    if made.get("extras") or on_device(made["kind"]).any():
        made |= device_facts(made)
    trace = Trace(**made, correlation_id=correlation_ids(made["kind"]))
    return trace if records is None else with_records(trace, records)


def _columns(events: RecordedEvents, links: NodeLinks) -> Columns:
    """The columns that every recording has, of events on the CPU in one step."""
    count = len(events)
    return {
        "name": events.name,
        "names": events.names,
        "kind": events.kind,
        "device": np.zeros(count, np.int8),
        "device_index": np.zeros(count, np.int8),
        "devices": ("CPU",),
        "start_ns": events.start_ns,
        "duration_ns": events.duration_ns,
        "track": events.thread,
        "tracks": events.threads,
        "phase": links.phase,
        "sequence_nr": events.sequence_nr,
        "forward": links.forward,
        "step": np.zeros(count, np.int32),
        "is_async": events.is_async | events.crossing_scopes(),
    }


def _phases(made: Columns) -> Columns:
    phase, launcher = with_closures(made), made.get("launcher")
    if launcher is None:
        return {"phase": phase}
    is_training = np.isin(phase, (BACKWARD, OPTIMIZER)).any()
    phase = np.where(on_device(made["kind"]), np.int8(OTHER if is_training else FORWARD), phase)
    return {"phase": np.where(launcher >= 0, phase[launcher], phase)}


def _inputs(made: Columns, events: RecordedEvents) -> Columns:
    columns: Columns = {}
    if made.get("shape") is not None:
        has_any = np.array([*map(bool, made["shapes"]), False])[made["shape"]]
        columns["shape"] = np.where((made["kind"] == OP) | has_any, made["shape"], np.int32(-1))
    if made.get("flops") is not None:
        is_inside = events.intervals.parents(made["flops"] >= 0) >= 0
        columns["flops"] = np.where(is_inside, -1, made["flops"])
    return columns


def _updated_parameters(made: Columns, intervals: ThreadIntervals, own: OwnParameters) -> Columns:
    """Columns `parameter` and `parameters`; `own` is asked for the outermost ops of optimizers.

    An op on a temporary belongs to the parameter of the ops before and after it, if both have the
    same.
    """
    is_updating = (made["phase"] == OPTIMIZER) & (made["kind"] == OP)
    parameter = np.full(len(is_updating), -1, np.int32)
    if not is_updating.any():
        return {"parameter": parameter}
    rows = np.concatenate(intervals.by_thread(is_updating))
    is_outermost = intervals.outermost(is_updating)[rows] == rows
    numbers, names = intern(_between(own(rows[is_outermost])))
    parameter[rows] = numbers[np.cumsum(is_outermost) - 1]
    return {"parameter": parameter, "parameters": names}


def _between(known: Sequence[str | None]) -> list[str | None]:
    """`known` with each gap between two ops of one parameter filled."""
    filled, last = list(known), -1
    for index, name in enumerate(known):
        if name is None:
            continue
        if last >= 0 and known[last] == name:
            filled[last:index] = [name] * (index - last)
        last = index
    return filled


def _on_devices(made: Columns, name: str, index: Int8) -> Columns:
    """The devices of ops by their inputs; recorders call all ops of a backend in Python CPU ops."""
    devices = tuple(dict.fromkeys((*made["devices"], name)))
    is_there = (made["kind"] == OP) & (index >= 0)
    return {
        "devices": devices,
        "device": np.where(is_there, np.int8(devices.index(name)), made["device"]),
        "device_index": np.where(is_there, index, made["device_index"]),
    }
