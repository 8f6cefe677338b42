"""The schema of a record of columns, read from the annotations of its fields.

A field of type `Int32` or the like is a column. Its annotation says what its numbers mean:

- `Annotated[Int32, PointsInto("names")]`: positions in the table `names`, -1 for none.
- `Annotated[Int32, POINTS_TO_EVENT]`: positions of other events, -1 for none.
- `Annotated[Int32, POINTS_TO_PARENT]`: positions of earlier rows of the same record, -1 for none.
- `Annotated[Int64, Absent(-1)]`: numbers of its own; -1 stands for a part that lacks the column.
- `Annotated[Int8, Within(0, 4)]`: numbers of its own from 0 to 3. An `int` may say that too.

Any other field may say how its values in several parts become one, `Annotated[int, Joined(sum)]`, and that its texts
have a form of their own, `Annotated[str, CheckedBy(json.loads)]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

Int8 = npt.NDArray[np.int8]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]

#: Columns and tables of a trace that is being built, by the names of the fields of `Trace`.
Columns = dict[str, Any]

_DTYPES: dict[Any, Any] = {Int8: np.int8, Int32: np.int32, Int64: np.int64, Bool: np.bool_}


class PointsInto(NamedTuple):
    """A column that holds positions in a table, -1 for none unless `always`.

    The table is a field of the record itself, or else of the trace.
    """

    table: str
    always: bool = False


class Within(NamedTuple):
    """Numbers that are never below `least`, and always below `limit`."""

    least: int
    limit: int

    def holds(self, lowest: int, highest: int) -> bool:
        """Whether all numbers from `lowest` to `highest` are right."""
        return self.least <= lowest and highest < self.limit


#: All integers of 64 bits.
INTEGERS = Within(-(1 << 63), 1 << 63)
#: Times that can be doubled and added to each other in 64 bits.
TIMES = Within(-(1 << 62), 1 << 62)
#: Unix nanoseconds.
Moment = Annotated[int, TIMES]


class Absent(NamedTuple):
    """The value for events of a trace without this column, when traces are merged."""

    value: int


class Beside(NamedTuple):
    """A table whose entries belong to those of another, position by position, or an empty one."""

    table: str


class Joined(NamedTuple):
    """How the values of several parts become one; without this the first part's value stays."""

    how: Callable[[list[Any]], Any]


def of_all(parts: list[Iterable[Any]]) -> tuple[Any, ...]:
    """The distinct entries of all parts, in the order in which they come."""
    return tuple(dict.fromkeys(entry for part in parts for entry in part))


def sorted_entries(parts: list[Iterable[Any]]) -> tuple[Any, ...]:
    """The distinct entries of all parts, sorted."""
    return tuple(sorted({entry for part in parts for entry in part}))


def updated(parts: list[Mapping[Any, Any]]) -> dict[Any, Any]:
    """The entries of all parts; of one key, the last."""
    return {key: value for part in parts for key, value in part.items()}


def all_known(parts: list[int]) -> int:
    """The sum; -1 where one part is unknown."""
    return -1 if min(parts) < 0 else sum(parts)


class CheckedBy(NamedTuple):
    """Texts for which `how` raises no error."""

    how: Callable[[str], Any]


#: A column that holds positions of other events, -1 for none.
POINTS_TO_EVENT = object()
#: A column that holds positions of earlier rows of the same record, -1 for none.
POINTS_TO_PARENT = object()


@dataclass(frozen=True)
class Column:
    """One column of a record, as its annotation describes it."""

    name: str
    dtype: np.dtype[Any]
    is_optional: bool
    #: The number for events of a part that lacks the column.
    absent: int = 0
    #: The table that the column points into, "" for none.
    table: str = ""
    #: Whether each number is a position in `table`, so that there is no -1.
    always: bool = False
    points_to_event: bool = False
    points_to_parent: bool = False
    #: Where its numbers have to be. None where any that the type can hold is right.
    within: Within | None = None


@dataclass(frozen=True)
class Schema:
    """All that the annotations of a record describe."""

    #: The annotation of each field.
    hints: Mapping[str, Any]
    columns: Mapping[str, Column]
    #: For each table that has others beside it, their names.
    beside: Mapping[str, tuple[str, ...]]
    joins: Mapping[str, Callable[[list[Any]], Any]]
    #: The fields that hold other records. A table that is one is a tree of stacks.
    records: Mapping[str, type[Record]]

    @property
    def tables(self) -> list[str]:
        """The tables that columns point into."""
        return list(dict.fromkeys(column.table for column in self.columns.values() if column.table))


_SCHEMAS: dict[type, Schema] = {}
#: A column of so many rows is kept as a single value, if it has only one.
_LONG = 4096


def schema_of(record: type) -> Schema:
    """The schema of a dataclass whose fields are annotated as this module describes."""
    if record not in _SCHEMAS:
        _SCHEMAS[record] = _read_schema(record)
    return _SCHEMAS[record]


def _read_schema(record: type) -> Schema:
    columns: dict[str, Column] = {}
    beside: dict[str, tuple[str, ...]] = {}
    joins: dict[str, Callable[[list[Any]], Any]] = {}
    records: dict[str, type[Record]] = {}
    hints = get_type_hints(record, include_extras=True)
    for name, hint in hints.items():
        hint, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        dtypes = [_DTYPES[kind] for kind in (hint, *get_args(hint)) if kind in _DTYPES]
        if dtypes:
            columns[name] = _column(name, dtypes[0], hint not in _DTYPES, notes)
        for kind in (hint, *get_args(hint)):
            if isinstance(kind, type) and issubclass(kind, Record):
                records[name] = kind
        for note in notes:
            if isinstance(note, Beside):
                beside[note.table] = (*beside.get(note.table, ()), name)
            elif isinstance(note, Joined):
                joins[name] = note.how
    return Schema(hints, columns, beside, joins, records)


def _column(name: str, dtype: Any, is_optional: bool, notes: list[Any]) -> Column:
    column = Column(name, np.dtype(dtype), is_optional)
    for note in notes:
        if isinstance(note, PointsInto):
            column = replace(column, absent=-1, table=note.table, always=note.always)
        elif note is POINTS_TO_EVENT:
            column = replace(column, absent=-1, points_to_event=True)
        elif note is POINTS_TO_PARENT:
            column = replace(column, absent=-1, points_to_parent=True)
        elif isinstance(note, Absent):
            column = replace(column, absent=note.value)
        elif isinstance(note, Within):
            column = replace(column, within=note)
    return column


class Record:
    """A frozen dataclass of columns: no column can be written to, and a copy or pickle cannot either."""

    def __post_init__(self) -> None:
        shape = None
        for column in schema_of(type(self)).columns.values():
            given = getattr(self, column.name)
            if given is None:
                continue
            frozen = _frozen(given, column.dtype)
            shape = shape or frozen.shape
            if frozen.ndim != 1 or frozen.shape != shape:
                msg = f"column {column.name!r} has shape {frozen.shape}, expected {shape}"
                raise ValueError(msg)
            object.__setattr__(self, column.name, frozen)

    @property
    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """The columns that are there, by name."""
        named = ((name, getattr(self, name)) for name in schema_of(type(self)).columns)
        return {name: column for name, column in named if column is not None}

    def __deepcopy__(self, _memo: Any) -> Any:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        values = {part.name: getattr(self, part.name) for part in fields(self)}  # type: ignore[arg-type]
        proxies = {name: dict(value) for name, value in values.items() if isinstance(value, MappingProxyType)}
        return partial(type(self), **values | proxies), ()


def concatenated(record: type, parts: Sequence[Columns]) -> Columns:
    """Each column of all parts as one array; a column that no part has is left out where it is optional."""
    whole: Columns = {}
    lengths = [len(part[next(iter(schema_of(record).columns))]) for part in parts]
    for column in schema_of(record).columns.values():
        columns = [part[column.name] for part in parts]
        if column.is_optional and all(values is None for values in columns):
            continue
        filled = (
            np.full(length, column.absent) if values is None else values
            for length, values in zip(lengths, columns, strict=True)
        )
        whole[column.name] = np.concatenate([np.empty(0, column.dtype), *filled])
    return whole


def _frozen(array: npt.ArrayLike, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    if isinstance(array, np.ndarray) and array.strides == (0,) and array.dtype == dtype:
        return array
    column = np.ascontiguousarray(array, dtype=dtype)
    if _is_constant(column):
        return np.broadcast_to(column[:1].copy(), column.shape)
    if column.flags.writeable:
        column = column.view()
        column.flags.writeable = False
    return column


def _is_constant(column: npt.NDArray[Any]) -> bool:
    """Whether a long column has one value in all rows. Half of the columns of a recording have, and need no memory."""
    if column.ndim != 1 or len(column) < _LONG:
        return False
    some = column[:: len(column) // 16]
    return bool((some == column[0]).all() and (column == column[0]).all())
