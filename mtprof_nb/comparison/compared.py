"""All that a comparison finds out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import cast

from mtprof_nb.comparison.alternation import Alternated
from mtprof_nb.comparison.differences import (
    kernel_differences,
    line_differences,
    op_differences,
    phase_differences,
    step_difference,
    whole_difference,
)
from mtprof_nb.comparison.exact_changes import Change, exact_changes
from mtprof_nb.comparison.joined_rows import Difference
from mtprof_nb.comparison.sides import Sides
from mtprof_nb.comparison.verdicts import Verdict, judged_pairs


@dataclass(frozen=True, eq=False)
class Compared:
    """The verdict, the changes that need no statistics, the rows with times, and notes about the recordings."""

    sides: Sides
    verdict: Verdict
    changes: tuple[Change, ...]
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
    #: Times of two functions that ran in turns; None for recordings.
    alternated: Alternated | None = None


def of_recordings(sides: Sides) -> Compared:
    """The comparison of recordings. The verdict is that on the median step, or on the wall time without steps."""
    whole, step = whole_difference(sides), step_difference(sides)
    rows = [
        *([step] if step is not None else []),
        whole,
        *phase_differences(sides),
        *line_differences(sides),
        *op_differences(sides),
        *kernel_differences(sides),
    ]
    verdict = cast("Verdict", rows[0].verdict)
    return Compared(sides, verdict, tuple(exact_changes(sides, rows)), tuple(rows), tuple(sides.notes()))


def of_functions(sides: Sides, alternated: Alternated, notes: Sequence[str] = ()) -> Compared:
    """The comparison of two functions: the verdict from their times in turns, the rest from a recording of each.

    Without recordings, as after an interrupt, the times are all there is.
    """
    verdict = judged_pairs(alternated.a_ns, alternated.b_ns, sides.matters)
    a_ns, b_ns = median(alternated.a_ns), median(alternated.b_ns)
    call = Difference("call", "median call", a_ns=a_ns, b_ns=b_ns, verdict=verdict)
    notes = (*_interrupted(alternated), *notes)
    if not sides.all_runs:
        return Compared(sides, verdict, (), (call,), notes, alternated)
    recorded = of_recordings(sides)
    rows = (call, *(row for row in recorded.differences if row.level not in ("whole", "step")))
    return replace(recorded, verdict=verdict, differences=rows, notes=(*notes, *recorded.notes), alternated=alternated)


def _interrupted(alternated: Alternated) -> tuple[str, ...]:
    if not alternated.is_interrupted:
        return ()
    return (f"Interrupted after {len(alternated.a_ns)} of {alternated.planned} pairs: the verdict is on these.",)
