"""Element types and sizes of the inputs of ops."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import NamedTuple

import numpy as np

from mtprof_nb.model.trace import Bool, Shapes, Trace


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
