"""Columns of numbers that cannot change, and records made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

Int8 = npt.NDArray[np.int8]
Int16 = npt.NDArray[np.int16]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]


def _frozen(array: npt.ArrayLike, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    column = np.ascontiguousarray(array, dtype=dtype)
    if column.flags.writeable:
        column = column.view()
        column.flags.writeable = False
    return column


def freeze_columns(owner: Any, length: int, dtypes: Mapping[str, npt.DTypeLike]) -> None:
    """Make the named columns of `owner` read-only and of these types; `ValueError` where one is not `length` long."""
    for name, dtype in dtypes.items():
        column = getattr(owner, name)
        if column is None:
            continue
        column = _frozen(column, dtype)
        if column.shape != (length,):
            msg = f"column {name!r} has shape {column.shape}, expected ({length},)"
            raise ValueError(msg)
        object.__setattr__(owner, name, column)


class Frozen:
    """A record that cannot change: it is its own copy, and a pickle makes a new one that cannot change either."""

    def __deepcopy__(self, _memo: Any) -> Any:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        values = (getattr(self, part.name) for part in fields(self))  # type: ignore[arg-type]
        return type(self), tuple(dict(value) if isinstance(value, MappingProxyType) else value for value in values)
