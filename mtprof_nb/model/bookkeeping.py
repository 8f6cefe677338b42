"""Ops that runtimes and profilers run for themselves: recorded, and counted nowhere, as in torch's own tables."""

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


def is_bookkeeping(trace: Trace) -> Bool:
    """Which events of `trace` are bookkeeping, by their names."""
    return trace.where_name(BOOKKEEPING.__contains__)
