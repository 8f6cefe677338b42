"""Inputs and metadata of Kineto's events: shapes, strides, element types, values, and facts of collectives."""

from __future__ import annotations

import json
import marshal
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from mtprof_nb.building.interning import intern
from mtprof_nb.capture.kineto.kineto_events import PART, KinetoColumns
from mtprof_nb.model.input_values import plain, to_text
from mtprof_nb.model.trace import RUNTIME, Bool, Columns, Int32, Int64, on_device

#: The op whose inputs describe a collective.
_COLLECTIVE = "record_param_comms"
_RECORD_FUNCTION = re.compile(r'(?:^|, )"Record function id": (\d+)')


def read_shapes(events: Sequence[Any], kineto_event: Any, has_inputs: Bool, *, with_strides: bool) -> Columns:
    """Shapes of the inputs of the chosen events, tensor lists nested, with element types and strides beside."""
    accessors = {"shapes": kineto_event.structured_input_shapes, "dtypes": kineto_event.dtypes}
    if with_strides:
        accessors["strides"] = kineto_event.structured_input_strides
    shape, table = _interned(events, has_inputs, *accessors.values())
    tables = {name: _nested_tuple([answer[index] for answer in table]) for index, name in enumerate(accessors)}
    return {"shape": shape, **tables}


def read_values(events: Sequence[Any], kineto_event: Any, has_inputs: Bool) -> tuple[Int32, tuple[str, ...]]:
    """Positions in the table of texts (see `input_values`) of the chosen events' inputs that are no tensors, or -1."""
    positions, table = _interned(events, has_inputs, kineto_event.concrete_inputs, kineto_event.kwinputs)
    texts: dict[str, int] = {}
    moved = [texts.setdefault(to_text(*plain(*one)), len(texts)) if any(one) else -1 for one in table]
    return np.array([*moved, -1], np.int32)[positions], tuple(texts)


def _interned(events: Sequence[Any], chosen: Bool, *accessors: Any) -> tuple[Int32, list[tuple[Any, ...]]]:
    """For each chosen event a position in the list of distinct answers of `accessors`; -1 for the others."""
    table: dict[bytes, int] = {}
    found = np.full(len(events), -1, np.int32)
    rows = np.flatnonzero(chosen)
    for first in range(0, len(rows), PART):
        part = rows[first : first + PART]
        answers = zip(*(map(accessor, [events[row] for row in part.tolist()]) for accessor in accessors), strict=True)
        found[part] = [table.setdefault(_key(answer), len(table)) for answer in answers]
    return found, [marshal.loads(key) for key in table]  # noqa: S302 - the bytes were made in the line above


def _key(answer: tuple[Any, ...]) -> bytes:
    """A hashable key, several times faster than nested tuples.

    Version 2 of marshal's format depends on values alone, not on shared references.
    """
    try:
        return marshal.dumps(answer, 2)
    except ValueError:  # a keyword may hold any object, a tensor too, which must not be kept
        return marshal.dumps(plain(*answer), 2)


def _nested_tuple(value: Any) -> Any:
    return tuple(map(_nested_tuple, value)) if isinstance(value, list | tuple) else value


def read_record_functions(results: Any, events: Sequence[Any], kineto_event: Any) -> Int64 | None:
    """The number of each event in an execution trace, 0 where it has none; None where no event has one.

    Kineto's activities have it, which are slow to read: call this only beside an execution trace.
    """
    activities: list[Any] = getattr(results, "trace_activities", list)()
    matches = ((activity, _RECORD_FUNCTION.search(activity.metadata_json())) for activity in activities)
    numbers = {activity.correlation_id(): int(match[1]) for activity, match in matches if match}
    found = np.array([numbers.get(number, 0) for number in map(kineto_event.correlation_id, events)], np.int64)
    return found if found.any() else None


def read_extras(columns: KinetoColumns, kineto_event: Any) -> Columns:
    """For each event a position in a table of JSON objects: the metadata of a collective or of a device."""
    drives_device = on_device(columns.kind) | (columns.kind == RUNTIME)
    rows = np.flatnonzero(drives_device | columns.where_name(_COLLECTIVE.__eq__)).tolist()
    said = [kineto_event.extra_meta(columns.events[row]) for row in rows]
    position, extras = intern([json.dumps(one) if one else None for one in said])
    extra = np.full(len(columns), -1, np.int32)
    extra[rows] = position
    return {"extra": extra, "extras": extras} if extras else {}
