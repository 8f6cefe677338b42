"""Columns of numbers as text of one width a column: made in numpy, several times as fast as `str` on each.

A column is an array of words of four characters, blank where a row has no value. JSON takes blanks between
its tokens, so that rows of text can be laid out side by side as a matrix is.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mtprof_nb.model.trace import Bool, Int64

#: Words of a row of text (one dimension), or of many rows (two).
Words = npt.NDArray[np.uint32]

_WORD = 4
_BASE = 10**_WORD
_LARGEST_SMALL = 2**32 - 1


def constant(text: str) -> Words:
    """`text`, which must be ASCII, in every row."""
    width = -(-len(text) // _WORD) * _WORD
    return np.frombuffer(text.ljust(width).encode("ascii"), np.uint32)


#: Four digits with leading zeros, four digits with leading blanks, and blanks alone.
_FOUR_DIGITS = constant(
    "".join([*(f"{number:04d}" for number in range(_BASE)), *(f"{number:4d}" for number in range(_BASE)), " " * _WORD])
)
_BLANK = 2 * _BASE
_POWERS = 10 ** np.arange(19)
_FRACTIONS = constant("".join(f".{number:03d}" for number in range(1000)))


def integers(values: Int64, absent: Bool | None = None) -> Words:
    """`values`, none negative, in decimal; blank where `absent`."""
    rest = values if absent is None else np.where(absent, 0, values)
    largest = int(rest.max(initial=0))
    columns: list[Words] = []
    while largest or not columns:
        if largest <= _LARGEST_SMALL:
            rest = rest.astype(np.uint32, copy=False)
        rest, low = np.divmod(rest, rest.dtype.type(_BASE))
        # The first digits of a number have blanks before them, all others zeros.
        leading = np.where((low == 0) & bool(columns), _BLANK, low + _BASE)
        position = np.where(rest == 0, leading, low)
        columns.append(_FOUR_DIGITS[position if absent is None else np.where(absent, _BLANK, position)])
        largest //= _BASE
    return np.stack(columns[::-1], axis=1)


def signed_integers(values: Int64, absent: Bool | None = None) -> Words:
    """`values` in decimal, negative ones too; blank where `absent`."""
    size = np.abs(values)
    rows = beside(len(values), constant(" "), integers(size, absent))
    negative = np.flatnonzero((values < 0) if absent is None else (values < 0) & ~absent)
    lengths = np.searchsorted(_POWERS, size[negative], "right")
    characters = rows.view(np.uint8)
    characters[negative, characters.shape[1] - 1 - lengths] = ord("-")
    return rows


def microseconds(ns: Int64) -> list[Words]:
    """Times, none negative, as microseconds with all their nanoseconds: 1234567 is 1234.567."""
    whole, rest = np.divmod(ns, 1000)
    return [integers(whole), _FRACTIONS[rest][:, None]]


def choice(texts: list[str], position: npt.NDArray[np.integer]) -> Words:
    """One of `texts` in each row, blank where the position is -1; they are padded to the same width."""
    width = max(map(len, texts), default=0)
    words: Words = np.stack([constant(text.ljust(width)) for text in [*texts, ""]])[position]
    return words


def beside(count: int, *columns: Words) -> Words:
    """`count` rows of text: the columns side by side."""
    rows = np.empty((count, sum(column.shape[-1] for column in columns)), np.uint32)
    first = 0
    for column in columns:
        last = first + column.shape[-1]
        rows[:, first:last] = column
        first = last
    return rows


def row_texts(rows: Words) -> list[bytes]:
    """Each row as bytes of its own."""
    texts: list[bytes] = rows.view(f"S{rows.shape[1] * _WORD}").ravel().tolist()
    return texts
