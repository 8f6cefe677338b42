"""Hand-made recordings of two programs, and their comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from traces import event, make_trace

from mtprof_nb.comparison.joined_rows import Difference
from mtprof_nb.comparison.sides import Side, Sides
from mtprof_nb.model.trace import Trace


def run(*ops: tuple[str, int], steps: int = 1, began_ns: int = 0, **facts: Any) -> Trace:
    """A recording of `steps` steps, each of these ops (name and nanoseconds), one after another.

    `facts` are fields of `Trace`, and of each event.
    """
    scalars = {name: facts.pop(name) for name in ("hooks", "dropped", "sources", "recorded", "own_ns") if name in facts}
    rows, now = [], began_ns
    for step in range(steps):
        for name, length in ops:
            rows.append(event(name, now, now + length, step=step, **facts))
            now += length
    return make_trace(rows, ended_ns=now, **scalars)


def sides(a: Trace | Sequence[Trace], b: Trace | Sequence[Trace], **options: Any) -> Sides:
    """Both sides, of one recording or of several."""
    return Sides(*(Side(label, _runs(given)) for label, given in (("a", a), ("b", b))), **options)


def _runs(given: Trace | Sequence[Trace]) -> tuple[Trace, ...]:
    return (given,) if isinstance(given, Trace) else tuple(given)


def row(rows: Sequence[Difference], name: str) -> Difference:
    """The one row of a name."""
    (found,) = (each for each in rows if each.name == name)
    return found
