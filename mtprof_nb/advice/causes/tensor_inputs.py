"""Element types and shapes of the inputs of ops, and ops that work on them element by element."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import NamedTuple

import numpy as np

from mtprof_nb.model.trace import Bool, Int64, Shapes, Trace

_POINTWISE = frozenset(
    f"aten::{name}"
    for name in (
        *("add", "sub", "rsub", "mul", "div", "pow", "neg", "abs", "square", "sqrt", "rsqrt", "reciprocal"),
        *("exp", "log", "exp2", "expm1", "log1p", "log2", "sin", "cos", "tan", "tanh", "sigmoid", "erf"),
        *("relu", "gelu", "silu", "elu", "leaky_relu", "softplus", "hardtanh", "hardswish", "mish", "clamp"),
        *("clamp_min", "clamp_max", "maximum", "minimum", "where", "masked_fill", "lerp", "addcmul"),
        *("addcdiv", "sign", "floor", "ceil", "round", "logical_not", "logical_and", "logical_or", "eq", "ne"),
        *("lt", "le", "gt", "ge"),
    )
)

#: A file may state shapes that no tensor has.
_MOST_ELEMENTS = 2**62


class TensorInput(NamedTuple):
    """One tensor that an op was given: its element type in lower case, its shape and its number of elements."""

    dtype: str
    shape: tuple[int, ...]
    elements: int


def with_inputs(trace: Trace, accepts: Callable[[list[TensorInput]], bool]) -> Bool:
    """The events whose tensors `accepts`, called once for each distinct list; none without shapes or types."""
    if trace.shape is None or not trace.dtypes:
        return np.zeros(len(trace), np.bool_)
    accepted = [accepts(tensors(*pair)) for pair in zip(trace.shapes, trace.dtypes, strict=True)]
    return np.array([*accepted, False], np.bool_)[trace.shape]


def tensors(shapes: Shapes, dtypes: tuple[str, ...]) -> list[TensorInput]:
    """The tensors among the inputs of an op: without lists of tensors, scalars and other values."""
    inputs = []
    for shape, dtype in zip(shapes, dtypes, strict=False):
        sizes = tuple(size for size in shape if isinstance(size, int))
        if dtype and not dtype.startswith(("Scalar", "GenericList", "TensorList")) and len(sizes) == len(shape):
            inputs.append(TensorInput(dtype.lower(), sizes, prod(sizes)))
    return inputs


def is_pointwise(trace: Trace) -> Bool:
    """The ops that compute each element from the elements at its place, in place or not."""
    return trace.where_name(lambda name: name in _POINTWISE or name.removesuffix("_") in _POINTWISE)


def largest_inputs(trace: Trace) -> tuple[Int64, Int64]:
    """For each event a number for the shape of its largest tensor, and its elements; -1 and 0 without one."""
    if trace.shape is None:
        return np.full(len(trace), -1, np.int64), np.zeros(len(trace), np.int64)
    numbers: dict[tuple[int, ...], int] = {}
    largest_of = []
    for shapes, dtypes in zip(trace.shapes, trace.dtypes or [("?",) * len(one) for one in trace.shapes], strict=True):
        largest = max((one.shape for one in tensors(shapes, dtypes)), key=prod, default=())
        elements = min(prod(largest), _MOST_ELEMENTS)
        largest_of.append((numbers.setdefault(largest, len(numbers)), elements) if largest else (-1, 0))
    table = np.array([*largest_of, (-1, 0)], np.int64)
    return table[trace.shape, 0], table[trace.shape, 1]
