"""Fields of a record as JSON, and back: the annotation of a field says what its JSON has to be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import repeat
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from mtprof_nb.model.file.layout import MalformedError, refuse
from mtprof_nb.model.schema import INTEGERS, CheckedBy, Within

Read = Callable[[Any], Any]


def json_form(value: Any) -> Any:
    """`value` in a form that `json` writes, which calls this for all but texts, numbers, tuples and dicts."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, np.generic):
        return value.item()
    msg = f"the file of a recording cannot hold {value!r} of {type(value)}"
    raise TypeError(msg)


@cache
def reader(hint: Any) -> Read:
    """A function that reads JSON as a value of type `hint`; it raises `MalformedError` for any other JSON."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _annotated(*arguments)
    if origin in (Union, UnionType):
        # The last one says what is wrong: the more exact one.
        return _either([reader(argument) for argument in sorted(arguments, key=lambda kind: kind is not NoneType)])
    if origin is tuple:
        return _many(arguments[0]) if arguments[1:] == (...,) else _row(tuple, list(map(reader, arguments)))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        pairs = _many(tuple[arguments])  # type: ignore[valid-type]
        return lambda value: dict(pairs(value))
    if hint in (str, int, bool, NoneType):
        return _exactly(hint)
    if isinstance(hint, type) and issubclass(hint, tuple):
        return _named_tuple(hint)
    if is_dataclass(hint):
        return _object(hint)
    msg = f"{hint} does not say how to read it from a file: give the field a more exact annotation"
    raise TypeError(msg)


def _annotated(hint: Any, *notes: Any) -> Read:
    for note in notes:
        if isinstance(note, Within):
            return _exactly(int, note)
        if isinstance(note, CheckedBy):
            return _checked(note.how)
    return reader(hint)


def _checked(check: Callable[[str], Any]) -> Read:
    read_text = _exactly(str)

    def read(value: Any) -> Any:
        try:
            check(read_text(value))
        except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
            refuse(f"{_shown(value)} ({error})")
        return value

    return read


def _exactly(kind: Any, within: Within = INTEGERS) -> Read:
    def read(value: Any) -> Any:
        if type(value) is not kind:
            refuse(f"{_shown(value)} in place of {_WORDS[kind]}")
        if kind is int and not within.holds(value, value):
            refuse(f"{value} is not between {within.least} and {within.limit - 1}")
        return value

    return read


_WORDS = {str: "text", int: "an integer", bool: "true or false", NoneType: "null"}


def _either(readers: list[Read]) -> Read:
    *others, last = readers

    def read(value: Any) -> Any:
        for one in others:
            with suppress(MalformedError):
                return one(value)
        return last(value)

    return read


def _many(hint: Any) -> Read:
    read_one = reader(hint)

    def read(value: Any) -> tuple[Any, ...]:
        entries = _list(value)
        # Most entries of tables are texts, or lists of lengths.
        if hint is str and set(map(type, entries)) <= {str}:
            return tuple(entries)
        if hint is int and set(map(type, entries)) == {int} and INTEGERS.holds(min(entries), max(entries)):
            return tuple(entries)
        return tuple(_each(repeat(read_one), entries))

    return read


def _row(make: Callable[[list[Any]], Any], readers: list[Read], least: int | None = None) -> Read:
    def read(value: Any) -> Any:
        entries = _list(value)
        if not (len(readers) if least is None else least) <= len(entries) <= len(readers):
            refuse(f"{len(entries)} values in place of {len(readers)}")
        return make(_each(readers, entries))

    return read


def _named_tuple(kind: Any) -> Read:
    """Fields that a file does not have yet get their defaults."""
    readers = [reader(hint) for hint in get_type_hints(kind, include_extras=True).values()]
    return _row(lambda values: kind(*values), readers, len(readers) - len(kind._field_defaults))


def _object(kind: Any) -> Read:
    readers = {name: reader(hint) for name, hint in get_type_hints(kind, include_extras=True).items()}

    def read(value: Any) -> Any:
        if not isinstance(value, dict) or value.keys() - readers.keys():
            refuse(f"{_shown(value)} in place of {', '.join(readers)}")
        names = list(value)
        read_all = _each((readers[name] for name in names), list(value.values()))
        return kind(**dict(zip(names, read_all, strict=True)))

    return read


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        refuse(f"{_shown(value)} in place of a list")
    return value


def _each(readers: Iterable[Read], entries: list[Any]) -> list[Any]:
    """Each entry as its reader reads it."""
    values: list[Any] = []
    try:
        for read, entry in zip(readers, entries, strict=False):
            values.append(read(entry))
    except MalformedError as problem:
        refuse(f"at {len(values)}: {problem}")
    return values


def _shown(value: Any) -> str:
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    text = ascii(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
