"""Inputs of ops for a Chrome trace: sizes, strides and types as JSON, values as PyTorch prints them."""

from __future__ import annotations

import json
import math
from typing import Any

from mtprof_nb.export.chrome_text import quoted, valid_json
from mtprof_nb.model.input_values import from_text
from mtprof_nb.model.trace import Shapes

#: Below this, PyTorch prints a whole double as an integer with a point.
_LARGEST_WHOLE = 1e10


def shape_text(shapes: Shapes, dtypes: tuple[str, ...], strides: Shapes) -> str:
    """The members for an op's input shapes, under Kineto's keys and ours; Kineto writes none without inputs."""
    if not shapes:
        return ',"input_shapes":[]'
    sizes = _compact(shapes)
    keys = f',"Input Dims":{sizes},"input_shapes":{sizes},"Input type":{_compact(dtypes)}'
    return f'{keys},"Input Strides":{_compact(strides)}' if strides else keys


def values_text(text: str, taken: frozenset[str]) -> str:
    """The members for an op's input values; a keyword has a key of its own, unless its name is `taken`."""
    inputs, keywords = from_text(text)
    values = f',"Concrete Inputs":{_compact(list(map(_printed, inputs)))}' if inputs else ""
    shown = {key: value for key, value in keywords.items() if key not in taken and _is_shown(value)}
    return values + "".join(f",{quoted(key)}:{_compact(value)}" for key, value in shown.items())


def extra_text(text: str, taken: frozenset[str]) -> str:
    """The members for the metadata of a collective or device event, whose values are JSON already."""
    metadata: dict[str, str] = json.loads(text)
    return "".join(f",{quoted(key)}:{valid_json(value)}" for key, value in metadata.items() if key not in taken)


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _is_shown(value: Any) -> bool:
    """Whether Kineto writes a keyword with this value: a number, string, bool or list of strings."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    return isinstance(value, bool | int | str)


def _printed(value: Any) -> str:
    """`value` as PyTorch's C++ prints it."""
    if value is None:
        return ""
    if isinstance(value, float):
        return _printed_double(value)
    if isinstance(value, complex):
        sign = "+" if value.imag >= 0 else "-"
        return f"{_printed_double(value.real)}{sign}{_printed_double(abs(value.imag))}j"
    if isinstance(value, list):
        return f"[{', '.join(map(_printed, value))}]"
    return str(value)


def _printed_double(value: float) -> str:
    if value.is_integer() and abs(value) < _LARGEST_WHOLE:
        sign = "-" if value == 0 and math.copysign(1, value) < 0 else ""
        return f"{sign}{int(value)}."
    return f"{value:.17g}"
