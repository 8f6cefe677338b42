"""Inputs of ops from their texts in a file: shapes, strides, element types, and values as PyTorch prints them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from mtprof_nb.model.input_values import plain, to_text
from mtprof_nb.model.schema import Columns, Int32
from mtprof_nb.reading.text.event_records import parsed

#: The separator of two inputs in Ascend's texts.
_BETWEEN = ";\r\n"
_LARGEST_SIZE = 2**62
_WHOLE, _REAL = re.compile(r"-?\d{1,19}"), re.compile(r"-?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?|-?inf|nan", re.IGNORECASE)


def shape_columns(positions: Int32, texts: Iterable[tuple[bytes, bytes, bytes]]) -> Columns:
    """Columns of shapes, and the tables of shapes, element types and strides, from pairs of texts."""
    entries: dict[Any, int] = {}
    sizes_of, names_of = cache(_sizes), cache(_type_names)
    moved = [
        entries.setdefault(_inputs(sizes_of(dims), names_of(types), sizes_of(strides)), len(entries))
        for dims, types, strides in texts
    ]
    shapes, dtypes, strides = zip(*entries, strict=True) if entries else ((), (), ())
    made: Columns = {"shape": np.array([*moved, -1], np.int32)[positions], "shapes": shapes, "dtypes": dtypes}
    return made | ({"strides": strides} if any(strides) else {})


def _inputs(sizes: tuple[Any, ...], names: tuple[str, ...], strides: tuple[Any, ...]) -> tuple[Any, ...]:
    # There is a type for each input; a file may be wrong.
    names = names if len(names) == len(sizes) else (*names, *("",) * len(sizes))[: len(sizes)]
    return sizes, names, strides


def _type_names(text: bytes) -> tuple[str, ...]:
    """Names of element types, "" for anything else among them."""
    names = parsed(text)
    if isinstance(names, str):
        names = names.split(_BETWEEN)
    return tuple(name if isinstance(name, str) else "" for name in names) if isinstance(names, list) else ()


def _sizes(text: bytes) -> tuple[Any, ...]:
    """Sizes of each input."""
    value = parsed(text)
    if isinstance(value, str):
        parts = value.split(_BETWEEN) if value else []
        value = [[int(size) for size in part.split(",") if _WHOLE.fullmatch(size.strip())] for part in parts]
    return tuple(map(_sizes_of_input, value)) if isinstance(value, list) else ()


def _sizes_of_input(value: Any) -> tuple[Any, ...]:
    """The sizes of a tensor, or of each tensor of a list; () for anything else, in the list too."""
    if not isinstance(value, list):
        return ()
    if any(isinstance(one, list) for one in value):
        return tuple([_sizes_of_tensor(one) for one in value])
    return _sizes_of_tensor(value)


def _sizes_of_tensor(value: Any) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, list) and all(map(_is_size, value)) else ()


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST_SIZE


def value_columns(inputs: Int32, texts: Sequence[bytes], keywords: Int32, members: Sequence[str]) -> Columns:
    """Columns of values from the printed inputs, and from members of `args` that are keywords of the user."""
    width = len(members) + 1
    rows = np.flatnonzero((inputs >= 0) | (keywords >= 0))
    pairs, place = np.unique((inputs[rows] + 1).astype(np.int64) * width + keywords[rows] + 1, return_inverse=True)
    table: dict[str, int] = {}
    numbers = []
    for first, second in zip(*(part.tolist() for part in np.divmod(pairs, width)), strict=True):
        printed = _printed_inputs(texts[first - 1]) if first else []
        named = _keywords(members[second - 1]) if second else {}
        numbers.append(table.setdefault(to_text(*plain(printed, named)), len(table)) if printed or named else -1)
    values = np.full(len(inputs), -1, np.int32)
    values[rows] = np.array(numbers, np.int32)[place]
    return {"values": values, "value_texts": tuple(table)} if table else {}


def _printed_inputs(text: bytes) -> list[Any]:
    inputs = parsed(text)
    return [_read(one) if isinstance(one, str) else one for one in inputs] if isinstance(inputs, list) else []


def _keywords(text: str) -> Mapping[str, Any]:
    """Members of `args`, whose values are JSON texts."""
    return {key: parsed(value.encode("utf-8", "replace")) for key, value in json.loads(text).items()}


def _read(text: str) -> Any:
    """The value that PyTorch printed so; None for a tensor, the text itself for an object of another kind."""
    if not text:
        return None
    if text in ("True", "False"):
        return text == "True"
    if _WHOLE.fullmatch(text):
        return int(text)
    if _REAL.fullmatch(text):
        return float(text)
    if text.startswith("[") and text.endswith("]"):
        inner = text[1:-1].strip()
        return [_read(part.strip()) for part in inner.split(",")] if inner and "[" not in inner else []
    return text
