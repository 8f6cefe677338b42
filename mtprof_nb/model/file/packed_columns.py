"""Columns as `.npy` texts of the smallest integers that hold them, as values or as steps from one value to the next."""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from mtprof_nb.model.file.layout import refuse
from mtprof_nb.model.schema import Column

#: From the narrowest on.
_TYPES = [np.dtype(name) for name in ("|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8")]
#: Steps are packed only if they are far from the limits of 64 bits.
_WIDEST = 1 << 61
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([<|][iu][1248])', 'fortran_order': False, 'shape': \((\d+),\), \} *\n", re.DOTALL
)
#: No header of a column is longer.
HEADER_BYTES = 256


def pack_column(column: Column, values: npt.NDArray[Any]) -> tuple[bytes, int | None]:
    """`values` as a `.npy` text; with the first one if the text holds steps, because those are narrower."""
    if values.dtype == np.bool_ or not len(values):
        return _text(values.astype(np.int8)), None
    least, most = int(values.min()), int(values.max())
    narrow = _narrowest(least, most)
    if narrow.itemsize > 1 and most - least < _WIDEST:
        codes, first = _codes(values.astype(np.int64), column.absent)
        stepped = _narrowest(0, int(codes.max()))
        if stepped.itemsize < narrow.itemsize:
            return _text(codes.astype(stepped)), first
    return _text(values.astype(narrow)), None


def unpack_column(column: Column, text: bytes, length: int, first: int | None) -> npt.NDArray[Any]:
    """The values that `pack_column` was given; `MalformedError` for another number of them, or too large ones."""
    header = _HEADER.match(text)
    if header is None:
        refuse("it is no column of integers")
    dtype, count = np.dtype(header[1].decode()), int(header[2])
    if dtype not in _TYPES or count != length or len(text) - header.end() != count * dtype.itemsize:
        refuse(f"it holds {count} numbers of {dtype.itemsize} bytes in {len(text):,} bytes, not {length}")
    stored = np.frombuffer(text, dtype, offset=header.end())
    return _fitting(column, stored if first is None else _values(stored, column.absent, first))


def _text(values: npt.NDArray[Any]) -> bytes:
    file = io.BytesIO()
    header = {"descr": np.lib.format.dtype_to_descr(values.dtype), "fortran_order": False, "shape": values.shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + values.tobytes()


def _narrowest(least: int, most: int) -> np.dtype[Any]:
    fitting = (kind for kind in _TYPES if np.iinfo(kind).min <= least and most <= np.iinfo(kind).max)
    return next(fitting)


def _codes(values: npt.NDArray[np.int64], absent: int) -> tuple[npt.NDArray[np.int64], int]:
    """0 for an absent value, and for each other one a number above 0 for the step from the one before."""
    is_there = values != absent
    has_all = bool(is_there.all())
    there = values if has_all else values[is_there]
    if not len(there):
        return np.zeros(len(values), np.int64), 0
    steps = np.diff(there, prepend=there[0])
    # 0, -1, 1, -2, … become 1, 2, 3, 4, …
    numbers = ((steps << 1) ^ (steps >> 63)) + 1
    if has_all:
        return numbers, int(there[0])
    codes = np.zeros(len(values), np.int64)
    codes[is_there] = numbers
    return codes, int(there[0])


def _values(codes: npt.NDArray[Any], absent: int, first: int) -> npt.NDArray[np.int64]:
    """The values of `_codes`."""
    is_there = codes != 0
    has_all = bool(is_there.all())
    numbers = (codes if has_all else codes[is_there]).astype(np.int64) - 1
    values = np.cumsum((numbers >> 1) ^ -(numbers & 1)) + first
    if has_all:
        return values
    whole = np.full(len(codes), absent, np.int64)
    whole[is_there] = values
    return whole


def _fitting(column: Column, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    dtype = np.dtype(column.dtype)
    least, limit = (0, 2) if dtype == np.bool_ else (np.iinfo(dtype).min, np.iinfo(dtype).max + 1)
    if len(values) and not (least <= int(values.min()) and int(values.max()) < limit):
        refuse(f"a number is out of the range of {dtype}")
    return values.astype(dtype)
