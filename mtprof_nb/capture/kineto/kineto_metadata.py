"""Facts that Kineto keeps beside its events: numbers in execution traces, metadata of collectives and devices."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from mtprof_nb.capture.kineto.kineto_events import KinetoColumns
from mtprof_nb.capture.shared.interning import intern
from mtprof_nb.model.trace import RUNTIME, Int32, Int64, Trace

#: The op whose inputs describe a collective.
_COLLECTIVE = "record_param_comms"
_RECORD_FUNCTION = re.compile(r'(?:^|, )"Record function id": (\d+)')


def read_record_functions(results: Any, events: Sequence[Any], kineto_event: Any) -> Int64 | None:
    """The number of each event in an execution trace, 0 where it has none; None where no event has one.

    Kineto's activities have it, which are slow to read: call this only beside an execution trace.
    """
    activities: list[Any] = getattr(results, "trace_activities", list)()
    matches = ((activity, _RECORD_FUNCTION.search(activity.metadata_json())) for activity in activities)
    numbers = {activity.correlation_id(): int(match[1]) for activity, match in matches if match}
    found = np.array([numbers.get(number, 0) for number in map(kineto_event.correlation_id, events)], np.int64)
    return found if found.any() else None


def read_extras(trace: Trace, columns: KinetoColumns, kineto_event: Any) -> tuple[Int32, tuple[str, ...]]:
    """For each event a position in a table of JSON objects: the metadata of a collective or of a device."""
    rows = np.flatnonzero(columns.where_name(_COLLECTIVE.__eq__) | trace.on_device | (trace.kind == RUNTIME)).tolist()
    said = [kineto_event.extra_meta(columns.events[row]) for row in rows]
    position, texts = intern([json.dumps(one) if one else None for one in said])
    extra = np.full(len(trace), -1, np.int32)
    extra[rows] = position
    return extra, texts
