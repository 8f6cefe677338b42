"""Ops of one line for hand-made traces, and the one finding about such a trace."""

from __future__ import annotations

from typing import Any

from traces import Row, event

from mtprof_nb.advice.advising import advise
from mtprof_nb.advice.finding import Finding
from mtprof_nb.model.trace import Trace

MS = 1_000_000
LINE = ("cell.py", 2)


def only(trace: Trace) -> Finding:
    """The finding about this trace, which has no other."""
    (finding,) = advise(trace)
    return finding


def op(name: str, start: int, end: int, *inputs: tuple[tuple[int, ...], str], **facts: Any) -> Row:
    """An op of `LINE`, with its times in ms and its inputs as shapes with types."""
    shapes, dtypes = tuple(shape for shape, _ in inputs), tuple(dtype for _, dtype in inputs)
    return event(name, start * MS, end * MS, shapes=shapes, dtypes=dtypes, line=LINE, **facts)
