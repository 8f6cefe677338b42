"""Text of a Chrome trace that is created once and used for many events."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import chain

import numpy as np
import numpy.typing as npt

from mtprof_nb.model.trace import Trace

Texts = npt.NDArray[np.object_]
#: A text for each row, or one that is repeated for all rows.
RowTexts = Iterable[bytes]

#: Kineto counts time from the last multiple of this, so that a double can represent nanoseconds.
_BASE_INTERVAL_NS = 7_889_238 * 1_000_000_000
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def quoted(text: str) -> str:
    """`text` as a JSON string in ASCII; also a lone surrogate becomes a valid escape."""
    return json.dumps(text)


def table(texts: Iterable[str]) -> Texts:
    """An array of ASCII texts; the last one, at position -1, is empty."""
    encoded = [*(text.encode("ascii") for text in texts), b""]
    column = np.empty(len(encoded), object)
    column[:] = encoded
    return column


def row_by_row(*columns: RowTexts) -> bytes:
    """Concatenate the columns' texts row by row, up to the end of the shortest column."""
    return b"".join(chain.from_iterable(zip(*columns, strict=False)))


def has_window(trace: Trace) -> bool:
    """Whether start and end of the recording are known; a file may count its times from 0."""
    return trace.began_ns > 0 or trace.ended_ns > trace.began_ns


def base_ns(trace: Trace) -> int:
    """The moment from which a file counts its microseconds."""
    times = [trace.start_ns] if trace.allocations is None else [trace.start_ns, trace.allocations.time_ns]
    moments = [int(column.min()) for column in times if len(column)]
    if has_window(trace) or not moments:
        moments.append(trace.began_ns)
    return min(moments) // _BASE_INTERVAL_NS * _BASE_INTERVAL_NS


def microseconds_text(ns: int) -> str:
    """A time as microseconds with all its nanoseconds: 1234567 is 1234.567."""
    return f"{ns // 1000}.{ns % 1000:03d}"


def valid_json(text: str) -> str:
    """`text` itself if it is JSON, else a JSON string that holds it; in ASCII either way."""
    try:
        json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return quoted(text)
    # In JSON, characters beyond ASCII stand inside strings alone, where an escape means the same.
    return _NOT_ASCII.sub(lambda match: quoted(match.group())[1:-1], text)


def _refuse(constant: str) -> None:
    raise ValueError(constant)
