"""Recorded Python calls: Kineto's numbers of them, and how often a function was called."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from mtprof_nb.analysis.nesting import nest
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.trace import PYTHON, Frame, Int32, Trace

#: Kineto's name of a call: the end of the file's path, the line at which the function begins, and its name.
_CALL = re.compile(r"(.+)\((\d+)\): (.+)")
_CALL_OF_MODULE = re.compile(r"nn\.Module: .+_(\d+)")


@dataclass(frozen=True, eq=False)
class PythonNumbers:
    """Numbers for each event of a trace, -1 for none."""

    #: From 1 on, in order of start.
    own: Int32
    #: The number of the innermost enclosing call.
    parent: Int32
    #: For a call of a module, its number among the modules of its class, from 0 on.
    module: Int32


@once_a_trace
def python_numbers(trace: Trace) -> PythonNumbers:
    """The numbers of all Python calls."""
    calls = trace.kind == PYTHON
    own = np.where(calls, np.cumsum(calls), -1).astype(np.int32)
    parent = nest(trace, calls).parent
    matches = map(_CALL_OF_MODULE.fullmatch, trace.names)
    of_name = np.array([int(match[1]) if match else -1 for match in matches] or [-1], np.int32)
    module = np.where(calls, of_name[trace.name], -1)
    return PythonNumbers(own, np.where(parent >= 0, own[parent], -1), module)


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
