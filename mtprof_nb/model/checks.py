"""Whether a trace keeps what its schema promises: a recorder's traces do, those of a file need not."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from mtprof_nb.model.intervals import order_of
from mtprof_nb.model.schema import INTEGERS, TIMES, Column, PointsInto, Record, Within, schema_of
from mtprof_nb.model.trace import Trace


def problem_of(trace: Trace) -> str:
    """The first promise that `trace` breaks: which, and where. "" if it keeps all of them."""
    return next(_problems(trace), "")


def _problems(trace: Trace) -> Iterator[str]:
    yield from _problems_of_columns(trace, trace)
    for name in schema_of(Trace).records:
        record = getattr(trace, name)
        if record is not None:
            yield from (f"{name}: {problem}" for problem in _problems_of_columns(record, trace))
    yield from _problems_of_tables(trace)
    if len(trace) and int(trace.end_ns.max()) >= TIMES.limit:
        yield f"event {int(trace.end_ns.argmax())} ends later than times can be"
    if order_of(trace.start_ns, trace.duration_ns) is not None:
        yield "events are not ordered by start"


def _problems_of_columns(record: Record, trace: Trace) -> Iterator[str]:
    columns = schema_of(type(record)).columns
    for name, values in record.columns.items():
        right = _right_numbers(columns[name], record, trace)
        if len(values) and not right.holds(int(values.min()), int(values.max())):
            yield _out_of_range(name, values, right)
        if columns[name].points_to_parent and bool(np.any(is_late := values >= np.arange(len(values)))):
            row = int(is_late.argmax())
            yield f"column {name!r}, row {row}: {values[row]} is not an earlier row"


def _right_numbers(column: Column, record: Record, trace: Trace) -> Within:
    if column.within is not None:
        return column.within
    if column.table:
        table = getattr(record if hasattr(record, column.table) else trace, column.table)
        return Within(-1 + column.always, 0 if table is None else len(table))
    if column.points_to_event or column.points_to_parent:
        return Within(-1, len(trace if column.points_to_event else getattr(record, column.name)))
    return INTEGERS


def _out_of_range(name: str, values: npt.NDArray[Any], right: Within) -> str:
    row = int(((values < right.least) | (values >= right.limit)).argmax())
    return f"column {name!r}, row {row}: {values[row]} is not between {right.least} and {right.limit - 1}"


def _problems_of_tables(trace: Trace) -> Iterator[str]:
    for table, others in schema_of(Trace).beside.items():
        for other in others:
            count, expected = len(getattr(trace, other)), len(getattr(trace, table))
            if count not in (0, expected):
                yield f"{other} has {count} entries, and {table} beside it {expected}"
    for table, position, target in _references_of_entries():
        count = len(getattr(trace, target))
        for number, entry in enumerate(getattr(trace, table)):
            if not 0 <= entry[position] < count:
                yield f"{table}, entry {number}: {entry[position]} is not a position in {target}"
    if not trace.processes:
        yield "processes is empty"


@cache
def _references_of_entries() -> list[tuple[str, int, str]]:
    """Fields of table entries that point into another table: table, position of the field, other table."""
    references = []
    for table, hint in get_type_hints(Trace).items():
        entry = next(iter(get_args(hint)), None)
        if get_origin(hint) is tuple and hasattr(entry, "_fields"):
            for position, inner in enumerate(get_type_hints(entry, include_extras=True).values()):
                notes = get_args(inner)[1:] if get_origin(inner) is Annotated else ()
                references += [(table, position, note.table) for note in notes if isinstance(note, PointsInto)]
    return references
