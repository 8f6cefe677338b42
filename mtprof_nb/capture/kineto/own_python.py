"""Python calls of this package among those that Kineto recorded, and calls on its behalf."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from mtprof_nb.capture.kineto.kineto_events import KinetoColumns
from mtprof_nb.capture.samples.python_stacks import is_in_folder, is_standard_library
from mtprof_nb.model.trace import Bool, Int64

_PACKAGE = str(Path(__file__).parents[2])
#: All calls below these serve the profiler: torch's profiler, queries of its compiler, and imports.
_CLOSED = (
    "torch/autograd/profiler.py(",
    "torch/profiler/",
    "torch/compiler/",
    "torch/distributed/",
    "<frozen importlib",
    "__import__",
)


def own_python(columns: KinetoColumns) -> Bool:
    """The events that are calls of this package, or calls on its behalf, but never calls of the user's functions."""
    own = columns.where_name(is_own_name) & columns.is_python
    of_own_threads = np.isin(columns.thread, np.unique(columns.thread[own]))
    parents = columns.intervals.parents(columns.is_python & of_own_threads)
    return _with_servants(parents, own, columns.where_name(is_serving_name), columns.where_name(is_closed_name))


def _with_servants(parents: Int64, hidden: Bool, serving: Bool, closed: Bool) -> Bool:
    sealed = np.zeros(len(hidden), np.bool_)
    while True:
        is_below = (parents >= 0) & hidden[parents] & ~hidden
        sealed |= (parents >= 0) & hidden[parents] & (sealed | closed)[parents]
        more = is_below & (serving | closed | sealed)
        if not more.any():
            return hidden
        hidden = hidden | more


def is_own_name(name: str) -> bool:
    """Whether a Python call, as Kineto names it (`file(line): function`), is this package's."""
    return name.startswith("mtprof_nb/") or is_in_folder(name, _PACKAGE)


def is_closed_name(name: str) -> bool:
    """Whether all calls below it are on behalf of the same caller."""
    return any(part in name for part in _CLOSED)


def is_serving_name(name: str) -> bool:
    """Whether it is a C function or one of the standard library, which may call back into the user's code."""
    if name.startswith(("<built-in", "<method", "<frozen ", "<string>(")):
        return True
    file = name.partition("(")[0]
    if Path(file).is_absolute():
        return is_standard_library(file)
    return file.partition("/")[0].removesuffix(".py") in sys.stdlib_module_names
