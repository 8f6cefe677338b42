"""Exact rank tests: against counts made by hand, and against scipy."""

import math
from itertools import combinations, product

import numpy as np
import pytest

from mtprof_nb.comparison.rank_tests import of_pairs, of_samples


def test_three_pairs_of_one_sign_have_the_chance_of_three_coins() -> None:
    assert of_pairs([1.0, 2.0, 4.0]).p == 2 / 8


def test_the_estimate_of_pairs_is_the_median_of_their_averages() -> None:
    # Averages of two: 1, 1.5, 2, 2.5, 3, 4.
    assert of_pairs([1.0, 2.0, 4.0]).estimate == 2.25


def test_fewer_than_six_pairs_exclude_nothing() -> None:
    shift = of_pairs([1.0, 2.0, 3.0, 4.0, 5.0])

    assert (shift.low, shift.high) == (-math.inf, math.inf)


def test_the_interval_of_six_pairs_holds_all_averages() -> None:
    shift = of_pairs([1.0, 2.0, 3.0, 4.0, 5.0, 9.0])

    assert (shift.low, shift.high) == (1.0, 9.0)
    assert shift.p == 2 / 64


def test_tied_pairs_share_a_rank() -> None:
    differences = np.array([1.0, 1.0, -1.0, 2.0, 2.0, -3.0])
    ranks = np.array([2.0, 2.0, 2.0, 4.5, 4.5, 6.0])
    found = ranks[differences > 0].sum()
    sums = [sum(rank for rank, sign in zip(ranks, signs, strict=True) if sign) for signs in product((0, 1), repeat=6)]
    beyond = min(sum(total >= found for total in sums), sum(total <= found for total in sums))

    assert of_pairs(differences).p == pytest.approx(min(1, 2 * beyond / 64), abs=1e-12)


def test_pairs_without_a_difference_take_no_part_in_the_test() -> None:
    assert of_pairs([0.0, 0.0, 1.0, 2.0, 4.0]).p == of_pairs([1.0, 2.0, 4.0]).p
    assert of_pairs([0.0] * 8).p == 1


def test_four_samples_above_four_others_have_the_chance_of_one_choice_in_seventy() -> None:
    shift = of_samples([1.0, 2.0, 3.0, 4.0], [11.0, 12.0, 13.0, 14.0])

    assert shift.p == pytest.approx(2 / 70, abs=1e-12)
    assert (shift.estimate, shift.low, shift.high) == (10.0, 7.0, 13.0)


def test_three_samples_of_each_exclude_nothing() -> None:
    assert of_samples([1.0, 2.0, 3.0], [11.0, 12.0, 13.0]).high == math.inf


def test_tied_samples_share_a_rank() -> None:
    ranks = [1.5, 1.5, 4.0, 4.0, 4.0, 6.0, 7.0]
    # The values are 1 1 2 2 2 3 4; b has one 2, the 3 and the 4.
    sums = [sum(chosen) for chosen in combinations(ranks, 3)]
    beyond = sum(total >= 17 for total in sums) / len(sums)

    assert of_samples([1.0, 1.0, 2.0, 2.0], [2.0, 3.0, 4.0]).p == pytest.approx(2 * beyond, abs=1e-12)


@pytest.mark.parametrize("size", [6, 9, 25, 49])
@pytest.mark.parametrize("seed", range(3))
def test_p_values_are_those_of_scipy(size: int, seed: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    noise = np.random.default_rng(seed)
    a, b = noise.lognormal(0.0, 1.0, size), noise.lognormal(0.4, 1.0, size)

    assert of_pairs(b - a).p == pytest.approx(stats.wilcoxon(b - a, method="exact").pvalue, abs=1e-12)
    assert of_samples(a, b[:-1]).p == pytest.approx(stats.mannwhitneyu(a, b[:-1], method="exact").pvalue, abs=1e-12)


@pytest.mark.parametrize("size", [6, 11, 30])
@pytest.mark.parametrize("seed", range(8))
def test_an_interval_excludes_zero_exactly_if_the_test_rejects(size: int, seed: int) -> None:
    noise = np.random.default_rng(seed)
    a, b = noise.normal(0.0, 1.0, size), noise.normal(0.6, 1.0, size)

    for shift in (of_pairs(b - a), of_samples(a, b)):
        assert (shift.low > 0 or shift.high < 0) == (shift.p <= 0.05)
        assert shift.low <= shift.estimate <= shift.high
