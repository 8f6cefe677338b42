"""Ranks that train together, made by hand: each works on line 3 and meets the others, one of them is slow on line 4."""

from dataclasses import replace
from typing import Any

from traces import Row, event, make_trace

from mtprof_nb.model.merge import merge
from mtprof_nb.model.trace import Process, Trace

MS = 1_000_000
FILE = "train.py"
SOURCE = "import torch\nfor step in range(n):\n    loss = model(x)\n    loss.sort()\n    loss.backward()\n"


def of_rank(rank: int, rows: list[Row], began_ns: int = 0, ended_ns: int = 100 * MS, **fields: Any) -> Trace:
    """The recording of one rank's process."""
    made = make_trace(rows, began_ns=began_ns, ended_ns=ended_ns, windows=((began_ns, ended_ns),), **fields)
    return replace(made, processes=(Process(100 + rank, rank, "host"),))


def gloo(start_ms: float, end_ms: float, name: str = "all_reduce", **facts: Any) -> Row:
    """A collective on a thread of Gloo."""
    return event(f"gloo:{name}", round(start_ms * MS), round(end_ms * MS), kind="scope", thread=9, **facts)


def op(start_ms: float, end_ms: float, name: str = "aten::mm", **facts: Any) -> Row:
    """An op of the main thread."""
    return event(name, round(start_ms * MS), round(end_ms * MS), **facts)


def straggling(ranks: int, slow: int, calls: int = 10, **fields: Any) -> list[Trace]:
    """A step is 4 ms of work on line 3, on the slow rank 3 ms more on line 4, and a collective that ends at 8 ms."""
    parts = []
    for rank in range(ranks):
        rows = []
        for step in range(calls):
            at, is_slow = step * 10, rank == slow
            rows.append(op(at, at + 4, line=(FILE, 3), step=step))
            rows += [op(at + 4, at + 7, "aten::sort", line=(FILE, 4), step=step)] if is_slow else []
            rows.append(gloo(at + (7 if is_slow else 4), at + 8, step=step))
        parts.append(of_rank(rank, rows, sources={FILE: SOURCE}, **fields))
    return parts


def job(ranks: int = 4, slow: int = 2, **fields: Any) -> Trace:
    """The ranks as one recording."""
    return merge(straggling(ranks, slow, label="job", **fields))
