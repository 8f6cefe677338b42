"""How often each Python function was called, where calls were recorded."""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np

from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.trace import PYTHON, Frame, Trace

#: Kineto's name of a call: the end of the file's path, the line at which the function begins, and its name.
_CALL = re.compile(r"(.+)\((\d+)\): (.+)")


def count_of_calls(trace: Trace, function: Frame) -> int | None:
    """The calls of a function that begins at the line of the frame; None where calls were not recorded."""
    counts = _counts(trace)
    if counts is None:
        return None
    namesakes = counts[function.function, function.line]
    return sum(count for file, count in namesakes if f"/{function.file}".endswith(f"/{file}"))


@once_a_trace
def _counts(trace: Trace) -> defaultdict[tuple[str, int], list[tuple[str, int]]] | None:
    """By name and first line, the file and the calls of each function."""
    calls = np.bincount(trace.name[trace.kind == PYTHON], minlength=len(trace.names))
    if not calls.any():
        return None
    counts: defaultdict[tuple[str, int], list[tuple[str, int]]] = defaultdict(list)
    for name, count in zip(trace.names, calls.tolist(), strict=True):
        if count and (call := _CALL.fullmatch(name)):
            counts[call[3], int(call[2])].append((call[1], count))
    return counts
