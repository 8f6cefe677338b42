"""Kineto's numbers of Python calls: of the call, of its parent call, of the called module."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from mtprof_nb.analysis.nesting import nest
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.trace import PYTHON, Int32, Trace

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
