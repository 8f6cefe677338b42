"""Verdicts on two measured times, with their reasons."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mtprof_nb.analysis import units
from mtprof_nb.comparison.rank_tests import Floats, Shift, of_pairs, of_samples

FASTER, SLOWER, SAME, UNKNOWN = "faster", "slower", "no difference that matters", "cannot tell"

#: Confidence of an interval: two equal programs get a verdict of a difference in at most the rest of all comparisons.
#: Functions in turns are cheap to measure, so that their verdict can be the more certain one.
PAIRS_CONFIDENCE, RUNS_CONFIDENCE = 0.99, 0.95
#: Two copies of one function differ by up to this share as long as they run: their data lie elsewhere in memory.
PLACEMENT = 0.02
#: Two recordings of one program differ by less than this factor, also on a busy machine (docs/comparing.md).
ONE_RUN_FLOOR = 10.0
#: Several recordings of one program, all of one side before all of the other, differ by less than this factor.
UNMIXED_FLOOR = 1.25
#: How far the share of pairs in which b was recorded after a may be from one half.
_MIXED = 0.25
_BELOW = f"below a factor of {ONE_RUN_FLOOR:g}, noise between two recordings can be the reason"
_FEWEST_PARTS = 3
_MOST_TESTED = 500

#: Returns times of steps, or of calls without the longest ones; called only if they are needed.
Parts = Callable[[], Sequence[float] | npt.NDArray[Any]]


@dataclass(frozen=True)
class Verdict:
    """Whether b takes less time than a. `ratio` is the time of b over that of a, `low` to `high` its interval."""

    #: "faster", "slower", "no difference that matters" or "cannot tell".
    answer: str
    #: The reason, and with "cannot tell" what to do about it.
    why: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    #: Chance of a difference as large between two equal programs.
    p: float | None = None
    #: Confidence of the interval: 0.99 for functions, 0.95 for several recordings.
    confidence: float | None = None

    def __str__(self) -> str:
        return f"{self.answer}: {self.why}"


def judged_pairs(a_ns: npt.ArrayLike, b_ns: npt.ArrayLike, matters: float) -> Verdict:
    """The verdict on two functions that ran in turns, from a time of each in each pair."""
    differences = np.log(b_ns) - np.log(a_ns)
    evidence = f"{len(differences)} pairs of blocks in turns"
    # Of very many pairs, neighbours are averaged: the exact test needs the square of their number.
    parts = np.array_split(differences, min(len(differences), _MOST_TESTED))
    shift = of_pairs([part.mean() for part in parts], PAIRS_CONFIDENCE)
    if math.isinf(shift.low):
        why = f"{evidence}: fewer than eight say nothing. Give a larger repeat"
        return Verdict(UNKNOWN, why, math.exp(shift.estimate), p=shift.p)
    verdict = _judged(
        shift, PAIRS_CONFIDENCE, matters, evidence, "repeat more often, or on a quieter machine", 1 + PLACEMENT
    )
    return _unless_placement(verdict, evidence)


def judged_runs(a_ns: Floats, b_ns: Floats, matters: float, are_mixed: bool = True) -> Verdict:
    """The verdict on a time of several runs of at least one side: a value for each run.

    `are_mixed`: whether the runs of both sides were recorded in turns or at random.
    """
    sizes = f"{len(a_ns)} and {len(b_ns)} runs"
    if min(a_ns.min(), b_ns.min()) <= 0:
        return Verdict(UNKNOWN, "no time was recorded in some of the runs")
    shift = of_samples(np.log(a_ns), np.log(b_ns), RUNS_CONFIDENCE)
    if math.isinf(shift.low):
        why = f"{sizes} are too few to tell a difference from chance: record at least four of each, in random order"
        return Verdict(UNKNOWN, why, math.exp(shift.estimate), p=shift.p)
    verdict = _judged(shift, RUNS_CONFIDENCE, matters, sizes, "record more runs of each, in random order")
    return verdict if are_mixed else _unmixed(verdict)


def judged_once(a_ns: float, b_ns: float, a_parts: Parts, b_parts: Parts, in_steps: bool = True) -> Verdict:
    """The verdict on a time of one run each: a difference only if it is far larger than noise, in most parts.

    One part that takes very long, such as the first one, may be most of the time of a run. So the median step has to
    differ as much; of recordings without steps, the longest calls are left out of the slower side.
    """
    if a_ns <= 0 or b_ns <= 0:
        return Verdict(UNKNOWN, "no time was recorded")
    ratio = b_ns / a_ns
    if _factor(ratio) < ONE_RUN_FLOOR:
        return Verdict(UNKNOWN, f"one run each: {_BELOW}", ratio)
    doubt, why = _in_steps(a_parts(), b_parts()) if in_steps else _in_calls(ratio, a_ns, b_ns, a_parts, b_parts)
    return Verdict(UNKNOWN if doubt else FASTER if ratio < 1 else SLOWER, f"one run each{doubt or why}", ratio)


def _in_steps(a: Any, b: Any) -> tuple[str, str]:
    """Why the times of steps leave a difference in doubt, or "", and why they do not."""
    if min(len(a), len(b)) < _FEWEST_PARTS:
        return f", and fewer than {_FEWEST_PARTS} steps of a side have it: one slow step can be the reason", ""
    factor = _factor(max(float(np.median(b)), 1.0) / max(float(np.median(a)), 1.0))
    if factor < ONE_RUN_FLOOR:
        return f": the median step differs by a factor of {factor:.2g} only; {_BELOW}", ""
    if _overlap(a, b):
        return ", and some steps of the slower side take no longer than some of the other", ""
    return "", f", but most steps differ, and the median step by a factor of {factor:.3g}; {_BELOW}"


def _in_calls(ratio: float, a_ns: float, b_ns: float, a_parts: Parts, b_parts: Parts) -> tuple[str, str]:
    """Why the times of calls leave a difference in doubt, or "", and why they do not."""
    slow, fast_ns = (a_parts, b_ns) if ratio < 1 else (b_parts, a_ns)
    factor = float(np.sum(slow())) / fast_ns
    if not factor:
        return ", and without the longest call of each op, no call of the slower side is left to compare", ""
    without = f"without the longest tenth of the calls of each op, the factor is {factor:.3g}"
    return (f": {without} only; {_BELOW}", "") if factor < ONE_RUN_FLOOR else ("", f", but even {without}; {_BELOW}")


def adjusted(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts on many rows: of those on a difference, one in twenty may be chance.

    The method is that of Benjamini and Hochberg; without it, twenty rows of equal programs would have a verdict each.
    """
    tested = sorted(verdict.p for verdict in verdicts if verdict.p is not None)
    passing = [p for rank, p in enumerate(tested, 1) if p <= (1 - RUNS_CONFIDENCE) * rank / len(tested)]
    largest = passing[-1] if passing else -1.0
    why = "not beyond the differences that chance alone shows among so many rows"
    return [
        replace(verdict, answer=UNKNOWN, why=why)
        if verdict.answer in (FASTER, SLOWER) and verdict.p is not None and verdict.p > largest
        else verdict
        for verdict in verdicts
    ]


def are_mixed(a_began: Sequence[int], b_began: Sequence[int]) -> bool:
    """Whether the runs of both sides, by their start, were recorded in turns or at random rather than side by side."""
    later = np.mean(np.subtract.outer(np.array(b_began), np.array(a_began)) > 0)
    return bool(abs(later - 0.5) <= _MIXED)


def _judged(shift: Shift, confidence: float, matters: float, evidence: str, remedy: str, least: float = 1.0) -> Verdict:
    """The verdict by an interval. `least` is the factor that a difference has to exceed."""
    ratio, low, high = (math.exp(value) for value in (shift.estimate, shift.low, shift.high))
    interval = f"{100 * confidence:g} % interval {units.ratio(low)} to {units.ratio(high)}"
    if 1 / (1 + matters) <= low and high <= 1 + matters:
        answer, why = SAME, f"{evidence}: the {interval} lies within ±{100 * matters:g} %"
    elif low > 1 or high < 1:
        answer, why = FASTER if high < 1 else SLOWER, f"{evidence}: {interval}"
    else:
        needed = _needed_difference(ratio, low, high, least)
        answer, why = UNKNOWN, f"{evidence}: the {interval} is too wide. {needed}; {remedy}"
    return Verdict(answer, why, ratio, low, high, shift.p, confidence)


def _needed_difference(ratio: float, low: float, high: float, least: float) -> str:
    """The smallest difference that gets a verdict with this noise: its interval lies beyond the factor `least`."""
    factor = least * max(high / ratio, ratio / low)
    needed = f"about {100 * (factor - 1):.2g} %" if factor < 1.995 else f"a factor of about {factor:.2g}"
    return f"With this noise, a verdict needs a difference of {needed}"


def _unless_placement(verdict: Verdict, evidence: str) -> Verdict:
    """A verdict of a difference only if the interval lies beyond what two copies of one function differ by."""
    low, high = verdict.low or 0.0, verdict.high or math.inf
    if verdict.answer not in (FASTER, SLOWER) or low > 1 + PLACEMENT or high < 1 / (1 + PLACEMENT):
        return verdict
    why = (
        f"{evidence}: the {100 * PAIRS_CONFIDENCE:g} % interval {low:.3f} to {high:.3f} reaches below a difference of "
        f"{100 * PLACEMENT:g} %, which two copies of one function have by their place in memory. "
        f"{_needed_difference(verdict.ratio or 1.0, low, high, 1 + PLACEMENT)}; repeat more often"
    )
    return replace(verdict, answer=UNKNOWN, why=why)


def _unmixed(verdict: Verdict) -> Verdict:
    """A verdict on runs of which all of one side came first: a change of the machine meanwhile is part of it."""
    low, high = verdict.low or 0.0, verdict.high or math.inf
    if low > UNMIXED_FLOOR or high < 1 / UNMIXED_FLOOR:
        return verdict
    why = (
        "the runs of one side were recorded before those of the other: what changed on the machine meanwhile is part "
        f"of the difference. {_needed_difference(verdict.ratio or 1.0, low, high, UNMIXED_FLOOR)}; "
        "record them in random order"
    )
    return replace(verdict, answer=UNKNOWN, why=why)


def _factor(ratio: float) -> float:
    """How many times as long the slower side takes."""
    return max(ratio, 1 / ratio)


def _overlap(a_parts: Any, b_parts: Any) -> bool:
    """Whether the ranges that hold four fifths of the parts overlap."""
    (a_low, a_high), (b_low, b_high) = (np.percentile(parts, (10, 90)) for parts in (a_parts, b_parts))
    return bool(a_low <= b_high and b_low <= a_high)
