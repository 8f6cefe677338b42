"""Reads the file of a recording as a `Trace`. The file is somebody else's: all of it is checked before it is used."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import MISSING, fields
from io import BytesIO
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

from mtprof_nb.errors import LoadError
from mtprof_nb.model.checks import problem_of
from mtprof_nb.model.file import layout
from mtprof_nb.model.file.archive import Archive
from mtprof_nb.model.file.layout import MalformedError, refuse
from mtprof_nb.model.file.packed_columns import HEADER_BYTES, unpack_column
from mtprof_nb.model.file.plain_values import reader
from mtprof_nb.model.schema import Column, Record, schema_of
from mtprof_nb.model.trace import Process, Trace

_UPGRADE = "it was saved by a later version of mtprof_nb: upgrade this one"
#: Positions of events have 32 bits.
_MOST_ROWS = 1 << 31

Found = TypeVar("Found")


class Outline(NamedTuple):
    """The processes of a recording, and its time."""

    processes: tuple[Process, ...]
    began_ns: int
    ended_ns: int


def read(path: str | os.PathLike[str]) -> Trace:
    """The trace that was saved as `path`. `LoadError` for any other file, with the reason."""
    return _read(path, _trace)


def read_outline(path: str | os.PathLike[str]) -> Outline:
    """The outline of the trace that was saved as `path`, without its events; `LoadError` as for `read`."""
    return _read(path, _outline)


def _read(path: str | os.PathLike[str], read_from: Callable[[IO[bytes]], Found]) -> Found:
    try:
        with Path(path).open("rb") as file:
            return read_from(file)
    except MalformedError as problem:
        msg = f"cannot load {os.fspath(path)!r}: {problem}; {problem.remedy}"
        raise LoadError(msg) from None
    except OSError as error:
        msg = f"cannot load {os.fspath(path)!r}: {error.strerror or error}"
        raise LoadError(msg) from error


def read_packed(content: bytes, name: str) -> Trace:
    """The trace in the content of a file. `LoadError` calls it by its `name`."""
    try:
        return _trace(BytesIO(content))
    except MalformedError as problem:
        msg = f"cannot load {name}: {problem}; {problem.remedy}"
        raise LoadError(msg) from None


def _trace(file: IO[bytes]) -> Trace:
    archive = Archive(file)
    manifest = archive.read_manifest()
    _check_version(manifest)
    trace: Trace = _record(archive, "", Trace, manifest.get("trace"))
    if archive.unread:
        refuse(f"its member {min(archive.unread)!a} is unknown here", _UPGRADE)
    if problem := problem_of(trace):
        refuse(problem)
    return trace


def _outline(file: IO[bytes]) -> Outline:
    manifest = Archive(file).read_manifest()
    _check_version(manifest)
    trace = manifest.get("trace")
    description = trace.get("fields") if isinstance(trace, dict) else None
    if not isinstance(description, dict):
        refuse("its description is missing")
    hints = schema_of(Trace).hints
    return Outline(*(_field(name, hints[name], description.get(name)) for name in Outline._fields))


def _check_version(manifest: Any) -> None:
    if not isinstance(manifest, dict) or manifest.get("format") != layout.FORMAT:
        refuse("it is a zip file of another kind", "name a file that save() wrote")
    version = manifest.get("version")
    if type(version) is not int or version < 1:
        refuse("its version is missing")
    if version > layout.VERSION:
        refuse(f"its format has version {version}, and {layout.VERSION} is the latest known here", _UPGRADE)


def _record(archive: Archive, name: str, kind: type[Record], description: Any) -> Any:
    """The record in the field `name`, which the manifest describes by `description`."""
    try:
        if not isinstance(description, dict) or not isinstance(others := description.get("fields"), dict):
            refuse("its description is missing")
        described = reader(layout.Described)(description.get("rows"))
        return kind(**_columns(archive, name, kind, described), **_fields(archive, kind, others))
    except MalformedError as problem:
        refuse(f"{name or 'trace'}: {problem}", problem.remedy)


def _columns(archive: Archive, name: str, kind: type[Record], described: layout.Described) -> dict[str, Any]:
    known, there = schema_of(kind).columns, dict(described.columns)
    _check_names(there, known)
    missing = [column.name for column in known.values() if not column.is_optional and column.name not in there]
    if missing:
        refuse(f"column {missing[0]!r} is missing")
    if not 0 <= described.length < _MOST_ROWS:
        refuse(f"it claims to have {described.length} rows")
    archive.need(layout.bytes_of_columns(kind, described.length))
    return {one: _column(archive, name, known[one], described.length, first) for one, first in there.items()}


def _column(archive: Archive, name: str, column: Column, length: int, first: int | None) -> Any:
    text = archive.read(layout.member_name(name, column), length * 8 + HEADER_BYTES)
    try:
        return unpack_column(column, text, length, first)
    except MalformedError as problem:
        refuse(f"column {column.name!r}: {problem}")


def _fields(archive: Archive, kind: type[Record], description: dict[str, Any]) -> dict[str, Any]:
    schema = schema_of(kind)
    known = [field for field in fields(kind) if field.name not in schema.columns]  # type: ignore[arg-type]
    _check_names(description, [field.name for field in known])
    values: dict[str, Any] = {}
    for field in known:
        if field.name not in description:
            if field.default is MISSING and field.default_factory is MISSING:
                refuse(f"{field.name!r} is missing")
        elif field.name in schema.records and description[field.name] is not None:
            values[field.name] = _record(archive, field.name, schema.records[field.name], description[field.name])
        elif field.name in schema.records:
            values[field.name] = None
        else:
            values[field.name] = _field(field.name, schema.hints[field.name], description[field.name])
    return values


def _field(name: str, hint: Any, value: Any) -> Any:
    try:
        return reader(hint)(value)
    except MalformedError as problem:
        refuse(f"{name!r} {problem}")


def _check_names(description: Any, known: Any) -> None:
    unknown = set(description).difference(known)
    if unknown:
        refuse(f"{min(unknown)!a} is unknown here", _UPGRADE)
