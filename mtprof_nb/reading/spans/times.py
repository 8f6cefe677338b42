"""Times of a Chrome trace: microseconds as numbers, or as texts, to integer nanoseconds without rounding."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from mtprof_nb.model.schema import Bool, Int64

#: Below this many microseconds a double distinguishes nanoseconds. Kineto's relative times are below.
_EXACT = 2.0**43
#: The largest number of microseconds: sums of three such times fit in 64 bits as nanoseconds.
_LARGEST = 2**61 // 1000
_DIGITS = re.compile(rb'"?\s*(-?)(\d+)(?:\.(\d*))?\s*"?')
_THREE_DECIMALS = re.compile(rb'(?:"?\d{1,16}\.\d{3}"? )*"?\d{1,16}\.\d{3}"?')
_HALF = 5


class NeedsDigitsError(Exception):
    """Times were decoded as doubles that are too large for nanoseconds: the digits in the file are needed."""


def to_ns(values: Sequence[Any] | npt.NDArray[np.float64], *, has_digits: bool) -> tuple[Int64, Bool | None]:
    """Nanoseconds of each time, and which of them are valid; None if all are.

    `NeedsDigitsError` where the digits in the file are more exact, unless `has_digits`: these are all.
    """
    kinds: set[type] = set()
    if not isinstance(values, np.ndarray):
        kinds = set(map(type, values))
        if kinds == {int} and (whole := _integers(values)) is not None:
            return whole * 1000, None
        if kinds in ({bytes}, {str}) and (exact := _three_decimals(values)) is not None:
            return exact, None
    if kinds <= {int, float}:
        doubles = _doubles(values)
        if (small := exact_ns(doubles)) is not None:
            return small, None
        if not has_digits and np.isfinite(doubles).all():
            raise NeedsDigitsError
    each = [_one(value) for value in values]
    valid = np.array([ns is not None for ns in each], np.bool_)
    return np.array([ns or 0 for ns in each], np.int64), None if valid.all() else valid


def exact_ns(times: npt.NDArray[np.float64]) -> Int64 | None:
    """Nanoseconds of times that are small enough for a double to hold them; None if one is larger, or is no number."""
    if not (times.min(initial=0) > -_EXACT and times.max(initial=0) < _EXACT):
        return None
    # The fraction is exact, and so is a whole number of nanoseconds: their product with the whole time is not.
    fraction, whole = np.modf(times)
    ns: Int64 = (whole * 1000 + np.rint(fraction * 1000)).astype(np.int64)
    return ns


def _integers(values: Sequence[int]) -> Int64 | None:
    """The values, None if one of them is too large for a time."""
    try:
        integers = np.frombuffer(struct.pack(f"{len(values)}q", *values), np.int64)
    except struct.error:  # a larger number
        return None
    return integers if integers.min() >= -_LARGEST and integers.max() <= _LARGEST else None


def _three_decimals(values: Sequence[Any]) -> Int64 | None:
    """Nanoseconds of texts with three decimals each, as Kineto and Ascend write them; None if one is another text."""
    text = b" ".join(values) if isinstance(values[0], bytes) else " ".join(values).encode("utf-8", "replace")
    if not _THREE_DECIMALS.fullmatch(text):
        return None
    try:
        ns = np.array(list(map(int, text.translate(None, b'."').split(b" "))), np.int64)
    except OverflowError:
        return None
    return ns if ns.max() <= _LARGEST * 1000 else None


def _doubles(values: Sequence[Any] | npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    if isinstance(values, np.ndarray):
        return values
    try:
        return np.fromiter(values, np.float64, len(values))
    except OverflowError:  # an integer of hundreds of digits
        return np.array([np.nan])


def _one(value: Any) -> int | None:
    """Nanoseconds of one time; None for a value that is no time."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return value * 1000 if abs(value) <= _LARGEST else None
    text = value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")
    match = _DIGITS.fullmatch(text)
    if match is None or len(match[2]) > len(str(_LARGEST)):
        return _unusual(text)
    sign, whole, fraction = match[1], match[2], match[3] or b""
    ns = int(whole) * 1000 + int((fraction + b"000")[:3])
    ns += len(fraction) > 3 and fraction[3] - ord("0") >= _HALF
    return (-ns if sign else ns) if ns <= _LARGEST * 1000 else None


def _unusual(text: bytes) -> int | None:
    """Nanoseconds of a number with an exponent."""
    try:
        number = Decimal(text.strip(b'" \t\r\n').decode("ascii", "replace"))
        return round(number * 1000) if number.is_finite() and abs(number) <= _LARGEST else None
    except (ArithmeticError, ValueError):
        return None
