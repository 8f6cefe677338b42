"""Traces of the recording itself: ops that are counted nowhere, as in torch's own tables, and time."""

from __future__ import annotations

from mtprof_nb.model.trace import Bool, Trace

BOOKKEEPING = frozenset(
    {
        "[memory]",
        "profiler::_record_function_enter",
        "profiler::_record_function_enter_new",
        "profiler::_record_function_exit",
        "aten::is_leaf",
        "aten::output_nr",
        "aten::_version",
    }
)
#: An estimate of the time that recording a Python call adds, which only Kineto records, in nanoseconds.
PYTHON_CALL_NS = 150


def is_bookkeeping(trace: Trace) -> Bool:
    """Which events of `trace` are bookkeeping, by their names."""
    return trace.where_name(BOOKKEEPING.__contains__)
