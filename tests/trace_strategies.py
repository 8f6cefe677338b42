"""Any trace that the schema allows, for hypothesis: a new field of `Trace` needs nothing here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from hypothesis import strategies as st

from mtprof_nb.model.input_values import check_metadata_of_event, check_values, to_text
from mtprof_nb.model.schema import CheckedBy, Column, Within, schema_of
from mtprof_nb.model.stack_tree import StackTree
from mtprof_nb.model.trace import Allocations, Process, Trace
from mtprof_nb.model.tracks import check_device

#: Every character there is, lone surrogates too.
TEXT = st.text(st.characters(exclude_categories=()), max_size=6)
INTEGERS = st.integers(-(1 << 63), (1 << 63) - 1)
_MOST = 6


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a field with this annotation."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _annotated(*arguments)
    if origin in (Union, UnionType):
        return st.one_of(map(values, arguments))
    if origin is tuple and arguments[1:] == (...,):
        return st.lists(values(arguments[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values, arguments))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return st.dictionaries(*map(values, arguments), max_size=3)
    if is_dataclass(hint):
        return st.builds(hint, **{name: values(inner) for name, inner in get_type_hints(hint).items()})
    if hasattr(hint, "_fields"):
        inner = get_type_hints(hint, include_extras=True).values()
        return st.tuples(*map(values, inner)).map(lambda entry: hint(*entry))
    return {str: TEXT, int: INTEGERS, bool: st.booleans(), NoneType: st.none()}[hint]


def _annotated(hint: Any, *notes: Any) -> st.SearchStrategy[Any]:
    for note in notes:
        if isinstance(note, Within):
            return st.integers(note.least, note.limit - 1)
        if isinstance(note, CheckedBy):
            return _OF_CHECKS[note.how]
    return values(hint)


#: Texts that pass a check.
_OF_CHECKS = {
    check_values: st.tuples(
        st.lists(INTEGERS | TEXT, max_size=3), st.dictionaries(TEXT, st.booleans(), max_size=2)
    ).map(lambda both: to_text(*both)),
    check_device: st.sampled_from(["", "CUDA:0", "NPU:11"]),
    check_metadata_of_event: st.dictionaries(TEXT, TEXT, max_size=2).map(json.dumps),
}


@st.composite
def traces(draw: Any) -> Trace:
    """A trace of some events; each optional column and record is there or not."""
    schema = schema_of(Trace)
    hints = get_type_hints(Trace, include_extras=True)
    names = [field.name for field in fields(Trace) if field.name not in schema.columns.keys() | schema.records.keys()]
    made: dict[str, Any] = {name: draw(values(hints[name])) for name in names}
    made["processes"] = made["processes"] or (Process(),)
    made["tracks"] = tuple(
        track._replace(process=draw(st.integers(0, len(made["processes"]) - 1))) for track in made["tracks"]
    )
    for table, others in schema.beside.items():
        for other in others:
            entry = get_args(get_args(hints[other])[0])[0]
            made[other] = draw(st.just(()) | st.tuples(*[values(entry)] * len(made[table])))
    made |= {name: draw(st.none() | trees()) for name, kind in schema.records.items() if kind is StackTree}
    always = [column.table for column in schema.columns.values() if column.always]
    count = draw(st.integers(0, _MOST)) if all(made[table] for table in always) else 0
    made |= columns(draw, Trace, made, count, count)
    rows = draw(st.integers(0, _MOST)) if made["devices"] else 0
    if draw(st.booleans()):
        made["allocations"] = Allocations(**columns(draw, Allocations, made, rows, count))
    return Trace(**made).sorted()


@st.composite
def trees(draw: Any) -> StackTree:
    """A tree of stacks."""
    frames = draw(values(get_type_hints(StackTree)["frames"]))
    count = draw(st.integers(0, _MOST)) if frames else 0
    frame = [draw(st.integers(0, len(frames) - 1)) for _ in range(count)]
    return StackTree(
        np.array(frame, np.int32), np.array([draw(st.integers(-1, row - 1)) for row in range(count)]), frames
    )


def columns(draw: Any, record: type, made: dict[str, Any], rows: int, events: int) -> dict[str, Any]:
    """Columns of a record that points into the tables `made`."""
    found: dict[str, Any] = {}
    for column in schema_of(record).columns.values():
        if not column.is_optional or draw(st.booleans()):
            least, most = _bounds(column, made, events)
            numbers = [draw(st.integers(least, most)) for _ in range(rows)]
            found[column.name] = np.array(numbers, column.dtype)
    return found


def _bounds(column: Column, made: dict[str, Any], events: int) -> tuple[int, int]:
    if column.table:
        table = made[column.table]
        return (0 if column.always else -1), (0 if table is None else len(table)) - 1
    if column.points_to_event:
        return -1, events - 1
    if column.within is not None:
        # Half of it, so that no event ends later than times can be.
        return column.within.least // 2, (column.within.limit - 1) // 2
    if column.dtype == np.bool_:
        return 0, 1
    return np.iinfo(column.dtype).min, np.iinfo(column.dtype).max
