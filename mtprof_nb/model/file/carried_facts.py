"""Facts of a whole recording that Chrome's format has no place for: an export has them in one member of the file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from typing import Any

from mtprof_nb.model.file.malformed import MalformedError
from mtprof_nb.model.file.plain_values import plain, reader
from mtprof_nb.model.schema import Columns, schema_of
from mtprof_nb.model.trace import Process, Trace

#: The member of the file.
KEY = "mtprof_nb"
_CARRIED = (
    *("windows", "unrecorded", "step_starts", "hooks", "notes", "lines_note", "dropped_exactly", "is_partial"),
    *("overhead_ns", "own_ns", "between_ops_ns", "outside", "cells", "process_facts"),
)


def carried_text(trace: Trace, pids: Sequence[int]) -> str:
    """A JSON object with the facts that `trace` tells; "" if it tells none. `pids` are the numbers in the file."""
    members: dict[str, Any] = {}
    for field in fields(Trace):
        value = getattr(trace, field.name)
        if field.name in _CARRIED and value != _default(field):
            # An object of JSON could have no keys but texts.
            members[field.name] = list(value.items()) if isinstance(value, Mapping) else value
    if len(trace.processes) > 1:
        # Lines of the file have their metadata.
        own = (process._replace(metadata=()) for process in trace.processes)
        members["processes"] = list(zip(pids, own, strict=True))
    return json.dumps(members, default=plain) if members else ""


def carried_facts(said: Any) -> tuple[Columns, int]:
    """Fields of a `Trace` from the JSON object of an export, and how many members are not as they are written.

    `processes` has pairs: the number of a process in the file, and the process.
    """
    if not isinstance(said, dict):
        return {}, 1
    hints, found, wrong = {**schema_of(Trace).hints, "processes": tuple[tuple[int, Process], ...]}, {}, 0
    for name in said.keys() & {*_CARRIED, "processes"}:
        try:
            found[name] = reader(hints[name])(said[name])
        except (MalformedError, RecursionError):
            wrong += 1
    return found, wrong


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()
