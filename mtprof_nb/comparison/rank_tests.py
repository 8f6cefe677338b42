"""Two tests by ranks, exact also for ties: the signed-rank test of pairs, and the rank-sum test of two samples.

Both come with the shift between the samples after Hodges and Lehmann, and with its confidence interval, which excludes
0 exactly if the test rejects. Nothing is assumed about the shape of the noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Shift:
    """How far one sample lies above another: an estimate, its confidence interval, and the p-value of "not at all"."""

    estimate: float
    low: float
    high: float
    p: float


def of_pairs(differences: npt.ArrayLike, confidence: float = 0.95) -> Shift:
    """The shift of paired samples from their differences, by Wilcoxon's signed-rank test.

    Differences of zero take no part in the test, and do in the estimate. Fewer than six pairs exclude nothing at 95 %,
    fewer than eight at 99 %.
    """
    values = np.asarray(differences, np.float64)
    first, second = np.triu_indices(len(values))
    averages = np.sort((values[first] + values[second]) / 2)
    low, high = _interval(averages, _signed_rank_null(np.arange(1, len(values) + 1) * 2)[::2], confidence)
    return Shift(float(np.median(averages)), low, high, _signed_rank_p(values[values != 0]))


def of_samples(before: npt.ArrayLike, after: npt.ArrayLike, confidence: float = 0.95) -> Shift:
    """The shift from `before` to `after`, two independent samples, by the rank-sum test of Mann and Whitney."""
    a, b = np.asarray(before, np.float64), np.asarray(after, np.float64)
    differences = np.sort(np.subtract.outer(b, a).ravel())
    untied = np.arange(1, len(a) + len(b) + 1) * 2
    least = len(b) * (len(b) + 1)
    low, high = _interval(differences, _rank_sum_null(untied, len(b))[least::2], confidence)
    ranks = _doubled_ranks(np.concatenate([a, b]))
    p = _two_sided(_rank_sum_null(ranks, len(b)), int(ranks[len(a) :].sum()))
    return Shift(float(np.median(differences)), low, high, p)


def _signed_rank_p(differences: Floats) -> float:
    ranks = _doubled_ranks(np.abs(differences))
    return _two_sided(_signed_rank_null(ranks), int(ranks[differences > 0].sum()))


def _doubled_ranks(values: Floats) -> npt.NDArray[np.int64]:
    """Twice the rank of each value, so that the shared rank of ties is an integer too."""
    distinct, place, count = np.unique(values, return_inverse=True, return_counts=True)
    doubled = 2 * np.cumsum(count) - count + 1 if len(distinct) else count
    return np.asarray(doubled[place.ravel()], np.int64)


def _signed_rank_null(ranks: npt.NDArray[np.int64]) -> Floats:
    """The probability of each sum of the ranks with a positive sign, where each sign is a coin's."""
    chance = np.zeros(int(ranks.sum()) + 1)
    chance[0], reach = 1.0, 0
    for rank in ranks.tolist():
        chance[rank : reach + rank + 1] += chance[: reach + 1].copy()
        reach += rank
        chance /= 2
    return chance


def _rank_sum_null(ranks: npt.NDArray[np.int64], size: int) -> Floats:
    """The probability of each sum of `size` of the ranks, where each choice of them is as likely as any other."""
    chance = np.zeros((size + 1, int(ranks.sum()) + 1))
    chance[0, 0] = 1.0
    for seen, rank in enumerate(ranks.tolist(), 1):
        for taken in range(min(seen, size), 0, -1):
            # Of `seen` ranks, `taken` are chosen with the last one among them, or without it.
            share = taken / seen
            chance[taken] *= 1 - share
            chance[taken, rank:] += share * chance[taken - 1, :-rank]
    null: Floats = chance[size]
    return null


def _two_sided(null: Floats, observed: int) -> float:
    """The probability of a sum at least as far from the middle as `observed`, on either side."""
    return min(1.0, 2 * min(float(null[: observed + 1].sum()), float(null[observed:].sum())))


def _interval(ordered: Floats, null: Floats, confidence: float) -> tuple[float, float]:
    """The interval between two of the `ordered` differences: those that `null` leaves outside with a small chance."""
    outside = int(np.searchsorted(np.cumsum(null), (1 - confidence) / 2 + 1e-12, side="right"))
    if outside == 0 or not len(ordered):
        return -np.inf, np.inf
    return float(ordered[outside - 1]), float(ordered[-outside])
