"""Ops that know their lines, for hand-made traces, and the cost of those lines as a table."""

from collections.abc import Iterable
from typing import Any

from traces import event

from mtprof_nb.analysis.lines.line_costs import LineCosts, line_costs
from mtprof_nb.model.trace import Int64, SourceLine, Trace

CELL = "<ipython-input-1-0>"


def op(name: str, start: int, end: int, line: int | None = None, **facts: Any) -> dict[str, Any]:
    if line is not None:
        facts["line"] = (CELL, line)
    return event(name, start, end, **facts)


def backward(name: str, start: int, end: int, **facts: Any) -> dict[str, Any]:
    """An event of the backward pass, called from line 9."""
    return op(name, start, end, **{"line": 9, "phase": "backward", **facts})


def self_ns(costs: LineCosts) -> Int64:
    """The self time of each line's own ops, all phases together."""
    return costs.forward_ns + costs.backward_ns + costs.optimizer_ns + costs.other_ns


def columns(costs: LineCosts, *names: str) -> dict[int | None, tuple[int, ...]]:
    """The chosen columns by line number, None for what belongs to no line; rows of zeros left out."""
    lines: Iterable[SourceLine | None] = (*costs.lines, None)
    chosen = [self_ns(costs) if name == "self_ns" else getattr(costs, name) for name in names]
    rows = {
        line.line if line else None: tuple(int(column[index]) for column in chosen) for index, line in enumerate(lines)
    }
    return {line: row for line, row in rows.items() if any(row)}


def times(trace: Trace) -> dict[int | None, tuple[int, ...]]:
    """(forward, backward, optimizer, other) of every line."""
    return columns(line_costs(trace), "forward_ns", "backward_ns", "optimizer_ns", "other_ns")
