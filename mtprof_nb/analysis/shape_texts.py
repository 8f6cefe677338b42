"""Shapes and element types of inputs, as text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

#: Names that PyTorch has in Python for types that it names as in C++.
_TYPES = {
    "float": "float32",
    "double": "float64",
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
    **dict.fromkeys(("long int", "long", "long long"), "int64"),
    **dict.fromkeys(("int",), "int32"),
    **dict.fromkeys(("short int", "short"), "int16"),
    **dict.fromkeys(("signed char", "char"), "int8"),
    **dict.fromkeys(("unsigned char", "byte"), "uint8"),
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
}
#: Inputs that are no tensors have these types, or none.
_NO_TENSORS = ("", "Scalar", "ScalarList", "GenericList", "TensorList", "None")


def type_name(dtype: str) -> str:
    """The name of an element type in Python, such as `float32`; "" for an input that is no tensor."""
    return "" if dtype in _NO_TENSORS else _TYPES.get(dtype, dtype)


def shapes_text(shapes: Any) -> str:
    """Shapes as PyTorch writes them: `[64, 256] [256]`."""
    return " ".join(map(_shape_text, shapes))


def shapes_and_types_text(shapes: Any, dtypes: Sequence[str]) -> str:
    """Shapes with their types: `[64, 256] float32, [256] float32`; without types as `shapes_text`."""
    if not any(map(type_name, dtypes)):
        return shapes_text(shapes)
    pairs = zip_longest(shapes, dtypes[: len(shapes)], fillvalue="")
    return ", ".join(f"{_shape_text(shape)} {type_name(dtype)}".strip() for shape, dtype in pairs)


def _shape_text(shape: Any) -> str:
    return str(list(shape)).replace("(", "[").replace(",)", "]").replace(")", "]")
