"""Rows of both sides, joined by their keys: the values of each run, and the verdict on the times."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from mtprof_nb.comparison.rank_tests import Floats
from mtprof_nb.comparison.sides import Sides
from mtprof_nb.comparison.verdicts import SAME, UNKNOWN, Parts, Verdict, adjusted, judged_once, judged_runs
from mtprof_nb.model.trace import Trace

NEW, GONE, MORE, LESS, EDITED = "new", "gone", "called more often", "called less often", "edited"
#: A row that has less than this share of the time on both sides is not tested.
SMALL = 0.01


@dataclass(frozen=True)
class Difference:
    """One row: an op, a kernel, a line, a phase, a step, a call or the whole, on both sides.

    Of several runs, a value is their median; if the numbers of steps differ, it is that of one step. A value is None
    where it is unknown, or the side does not have the row.
    """

    #: "whole", "step", "call", "phase", "line", "op" or "kernel".
    level: str
    #: Name of the op, kernel or phase, or text of the line.
    name: str
    #: Device of an op, if there are several; source locations of a line.
    detail: str = ""
    #: Calls of an op or kernel; ops of a line.
    a_calls: float | None = None
    b_calls: float | None = None
    #: Time without callees: of a kernel on its device, of a line with its time outside ops.
    a_ns: float | None = None
    b_ns: float | None = None
    #: Allocated bytes, as the panel shows them.
    a_bytes: float | None = None
    b_bytes: float | None = None
    #: "new", "gone", "called more often", "called less often", "edited" or "".
    change: str = ""
    #: The verdict on the times; None if one side does not have the row.
    verdict: Verdict | None = None

    @property
    def delta_ns(self) -> float:
        """Time of b less that of a."""
        return (self.b_ns or 0.0) - (self.a_ns or 0.0)

    @property
    def ratio(self) -> float | None:
        """Time of b over that of a, as the verdict estimates it; None if one side has none."""
        if self.verdict is not None and self.verdict.ratio is not None:
            return self.verdict.ratio
        return self.b_ns / self.a_ns if self.a_ns and self.b_ns else None


class Item(NamedTuple):
    """One row in one run."""

    name: str
    detail: str = ""
    calls: float | None = None
    ns: float = 0.0
    nbytes: float | None = None
    #: A change of another kind than of its calls, such as "edited".
    change: str = ""
    #: Its times in each step; without steps, of its calls but for the longest. Called only if they are needed.
    parts: Parts = tuple


#: The rows of one run by key; those of two runs with equal keys are the same.
Items = dict[Hashable, Item]


def of_runs(sides: Sides, items_of: Callable[[Trace], Items]) -> tuple[list[Items], list[Items]]:
    """The items of each run of both sides."""
    return [items_of(run) for run in sides.a.runs], [items_of(run) for run in sides.b.runs]


def joined(sides: Sides, level: str, of_a: list[Items], of_b: list[Items]) -> list[Difference]:
    """A row for each key of any run, the largest change of time first."""
    divisors = [[float(sides.divisor(run)) for run in side.runs] for side in sides.both]
    keys = dict.fromkeys(key for items in (*of_a, *of_b) for key in items)
    rows = [_Row(_Values.of(key, of_a, divisors[0]), _Values.of(key, of_b, divisors[1])) for key in keys]
    rows = [row for row in rows if row.is_on_both_sides or sides.is_complete]
    wholes = sum(row.a.middle_ns for row in rows), sum(row.b.middle_ns for row in rows)
    verdicts = iter(adjusted([row.verdict(sides, *wholes) for row in rows if row.is_on_both_sides]))
    differences = [row.difference(sides, level, next(verdicts) if row.is_on_both_sides else None) for row in rows]
    return sorted(differences, key=lambda row: (-abs(row.delta_ns), row.name, row.detail))


def verdict_on(sides: Sides, a_ns: Floats, b_ns: Floats, a_parts: Parts, b_parts: Parts) -> Verdict:
    """The verdict on a time, one value a run; for one run each, with the times of its steps or calls."""
    if sides.is_one_run_each:
        verdict = judged_once(float(a_ns[0]), float(b_ns[0]), a_parts, b_parts, sides.in_steps)
    else:
        verdict = judged_runs(a_ns, b_ns, sides.matters, sides.are_mixed)
    reason = sides.why_incomparable
    return replace(verdict, answer=UNKNOWN, why=reason) if reason else verdict


def shift_of_ranges(a: Floats, b: Floats) -> int:
    """1 if every value of b is above every value of a, -1 if below, 0 if the ranges overlap or touch."""
    return int(b.min() > a.max() + 1e-9) - int(b.max() < a.min() - 1e-9)


class _Values(NamedTuple):
    """One row on one side: an entry a run, 0 for a run without it. None for a value that is not known."""

    item: Item | None
    calls: Floats | None
    ns: Floats
    nbytes: Floats | None

    @classmethod
    def of(cls, key: Hashable, runs: Sequence[Items], divisors: Sequence[float]) -> _Values:
        items = [items.get(key) for items in runs]
        first = next((item for item in items if item is not None), None)
        present = [item or Item("") for item in items]
        ns = np.array([item.ns for item in present]) / divisors
        calls = np.array([item.calls or 0.0 for item in present]) / divisors
        nbytes = np.array([item.nbytes or 0.0 for item in present]) / divisors
        return cls(
            item=first,
            calls=calls if first is not None and first.calls is not None else None,
            ns=ns,
            nbytes=nbytes if first is not None and first.nbytes is not None else None,
        )

    @property
    def middle_ns(self) -> float:
        return float(np.median(self.ns))


class _Row(NamedTuple):
    """One row on both sides."""

    a: _Values
    b: _Values

    @property
    def is_on_both_sides(self) -> bool:
        return self.a.item is not None and self.b.item is not None

    def difference(self, sides: Sides, level: str, verdict: Verdict | None) -> Difference:
        item = self.b.item or self.a.item or Item("")
        return Difference(
            level=level,
            name=item.name,
            detail=item.detail,
            a_calls=_middle(self.a.calls),
            b_calls=_middle(self.b.calls),
            a_ns=self.a.middle_ns if self.a.item is not None else None,
            b_ns=self.b.middle_ns if self.b.item is not None else None,
            a_bytes=_middle(self.a.nbytes),
            b_bytes=_middle(self.b.nbytes),
            change=self._change(item, sides),
            verdict=verdict,
        )

    def _change(self, item: Item, sides: Sides) -> str:
        if not self.is_on_both_sides:
            return NEW if self.a.item is None else GONE
        if item.change or self.a.calls is None or self.b.calls is None or not sides.is_complete:
            return item.change
        shift = shift_of_ranges(self.a.calls, self.b.calls)
        return MORE if shift > 0 else LESS if shift < 0 else ""

    def verdict(self, sides: Sides, whole_a: float, whole_b: float) -> Verdict:
        if self.a.middle_ns < SMALL * whole_a and self.b.middle_ns < SMALL * whole_b:
            return Verdict(SAME, f"less than {SMALL:.0%} of the time on both sides")
        a, b = (values.item or Item("") for values in (self.a, self.b))
        return verdict_on(sides, self.a.ns, self.b.ns, a.parts, b.parts)


def _middle(values: Floats | None) -> float | None:
    return None if values is None else float(np.median(values))
