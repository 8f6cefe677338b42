"""Verdicts on times: what is told, and where nothing can be told."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from mtprof_nb.comparison.verdicts import (
    FASTER,
    SAME,
    SLOWER,
    UNKNOWN,
    Verdict,
    adjusted,
    are_mixed,
    judged_once,
    judged_pairs,
    judged_runs,
)


def _pairs(low: float, high: float, matters: float = 0.05) -> Verdict:
    """The verdict on eight pairs, whose interval then reaches from the lowest to the highest ratio."""
    return judged_pairs(np.ones(8), np.geomspace(low, high, 8), matters)


def _once(a: Sequence[float], b: Sequence[float]) -> Verdict:
    return judged_once(float(np.median(a)), float(np.median(b)), lambda: a, lambda: b)


def _runs(a: Sequence[float], b: Sequence[float], is_mixed: bool = True) -> Verdict:
    return judged_runs(np.array(a, float), np.array(b, float), 0.05, is_mixed)


@pytest.mark.parametrize(
    ("low", "high", "answer"),
    [
        (0.70, 0.80, FASTER),
        (1.03, 1.30, SLOWER),
        (0.97, 1.04, SAME),
        # A difference for certain, but of an amount that does not matter.
        (1.01, 1.04, SAME),
        (0.97, 1.06, UNKNOWN),
        # Two copies of one function differ as much.
        (1.015, 1.30, UNKNOWN),
        (0.80, 0.985, UNKNOWN),
        (0.50, 2.00, UNKNOWN),
    ],
)
def test_the_interval_of_functions_in_turns_decides(low: float, high: float, answer: str) -> None:
    verdict = _pairs(low, high)

    assert verdict.answer == answer
    assert (verdict.low, verdict.high, verdict.confidence) == pytest.approx((low, high, 0.99))


def test_the_amount_that_matters_is_the_users() -> None:
    assert _pairs(0.85, 0.9, matters=0.2).answer == SAME
    assert _pairs(0.97, 1.04, matters=0.01).answer == UNKNOWN


def test_too_few_pairs_tell_nothing() -> None:
    verdict = judged_pairs([2.0] * 7, [1.0] * 7, 0.05)

    assert (verdict.answer, verdict.ratio, verdict.low) == (UNKNOWN, 0.5, None)
    assert "fewer than eight" in verdict.why


def test_very_many_pairs_are_averaged_by_neighbours() -> None:
    verdict = judged_pairs(np.ones(5_000), np.tile([0.7, 0.9], 2_500), 0.05)

    assert verdict.answer == FASTER
    assert (verdict.low, verdict.high) == pytest.approx((0.63**0.5,) * 2)


def test_four_runs_of_each_can_tell_and_three_cannot() -> None:
    assert _runs([10, 11, 12, 13], [5, 6, 5.5, 6.5]).answer == FASTER
    assert _runs([5, 6, 5.5, 6.5], [10, 11, 12, 13]).answer == SLOWER
    assert _runs([10, 11, 12], [5, 6, 5.5]).answer == UNKNOWN
    assert "too few" in _runs([10, 11, 12], [5, 6, 5.5]).why


def test_runs_one_side_after_the_other_need_a_larger_difference() -> None:
    a = [100, 101, 102, 103]

    assert _runs(a, [85, 86, 87, 88], is_mixed=True).answer == FASTER
    assert _runs(a, [85, 86, 87, 88], is_mixed=False).answer == UNKNOWN
    assert _runs(a, [101, 102, 100, 103], is_mixed=False).answer == UNKNOWN
    assert _runs(a, [60, 61, 62, 63], is_mixed=False).answer == FASTER


def test_runs_without_time_tell_nothing() -> None:
    assert _runs([0, 0, 0, 0], [1, 2, 3, 4]).answer == UNKNOWN


@pytest.mark.parametrize(
    ("a", "b", "mixed"),
    [
        ([1, 3, 5, 7], [2, 4, 6, 8], True),
        ([1, 4, 5, 8], [2, 3, 6, 7], True),
        ([1, 2, 3, 4], [5, 6, 7, 8], False),
        ([5, 6, 7, 8], [1, 2, 3, 4], False),
        ([0, 0, 0, 0], [0, 0, 0, 0], False),
    ],
)
def test_runs_are_mixed_if_neither_side_came_first(a: list[int], b: list[int], mixed: bool) -> None:
    assert are_mixed(a, b) == mixed


def test_one_run_of_each_tells_nothing_below_the_floor() -> None:
    assert _once([100, 100, 100], [11, 11, 11]).answer == UNKNOWN
    assert _once([100, 100, 100], [950, 950, 950]).answer == UNKNOWN


def test_one_run_of_each_tells_a_difference_beyond_the_floor_in_all_steps() -> None:
    assert _once([100, 110, 120], [8, 9, 9.5]).answer == FASTER
    assert _once([100, 110, 120], [1400, 1410, 1420]).answer == SLOWER


def test_one_run_of_each_needs_three_steps_or_calls() -> None:
    verdict = judged_once(100.0, 1.0, tuple, tuple)

    assert (verdict.answer, verdict.ratio) == (UNKNOWN, 0.01)
    assert "fewer than 3" in verdict.why


def test_one_long_call_is_no_difference() -> None:
    quiet, disturbed = [10] * 9, [10] * 8 + [4000]

    assert judged_once(sum(quiet), sum(disturbed), lambda: quiet, lambda: disturbed).answer == UNKNOWN


def test_calls_that_differ_less_than_the_sums_are_no_difference() -> None:
    few, disturbed = [10.0, 10.1, 10.2], [12.0, 12.1, 9000.0]

    assert judged_once(sum(few), sum(disturbed), lambda: few, lambda: disturbed).answer == UNKNOWN


def test_a_time_of_zero_tells_nothing() -> None:
    assert judged_once(0.0, 5.0, tuple, tuple).ratio is None


def _calls(a: Sequence[float], b: Sequence[float]) -> Verdict:
    """The verdict on calls of one op without steps: the longest call of either side is left out."""
    return judged_once(sum(a), sum(b), lambda: sorted(a)[:-1], lambda: sorted(b)[:-1], in_steps=False)


def test_fewer_calls_are_a_difference_though_each_takes_as_long() -> None:
    verdict = _calls([10.0] * 1_000, [10.0] * 18)

    assert (verdict.answer, verdict.ratio) == (FASTER, 0.018)
    assert verdict.why == (
        "one run each, but even without the longest tenth of the calls of each op, the factor is 55.5; below a factor "
        "of 10, noise between two recordings can be the reason"
    )


def test_one_long_call_of_few_is_no_difference_and_the_reason_names_the_factor_without_it() -> None:
    assert _calls([10.0, 10.0, 9_000.0], [4.0, 4.0]).why == (
        "one run each: without the longest tenth of the calls of each op, the factor is 2.5 only; below a factor of "
        "10, noise between two recordings can be the reason"
    )
    assert _calls([9_000.0], [4.0, 4.0]).answer == UNKNOWN
    assert "no call of the slower side is left to compare" in _calls([9_000.0], [4.0, 4.0]).why


def test_steps_name_the_factor_of_the_median_step() -> None:
    a, disturbed = [10.0] * 9, [30.0] * 8 + [9_000.0]

    assert judged_once(sum(a), sum(disturbed), lambda: a, lambda: disturbed).why == (
        "one run each: the median step differs by a factor of 3 only; below a factor of 10, noise between two "
        "recordings can be the reason"
    )


NOISE = 1e6 * np.array([1.0, 1.3, 0.9, 1.1, 1.02, 0.97, 1.25, 1.05])


@pytest.mark.parametrize(
    "judged",
    [
        lambda factor: judged_pairs(np.full(8, 1e6), NOISE * factor, 0.05),
        lambda factor: judged_runs(np.roll(NOISE, 3), NOISE * factor, 0.05),
        lambda factor: judged_runs(np.roll(NOISE, 3), NOISE * factor, 0.05, are_mixed=False),
        lambda factor: _once(np.roll(NOISE, 3).tolist(), (NOISE * factor).tolist()),
        lambda factor: _calls(np.roll(NOISE, 3).tolist(), (NOISE * factor).tolist()),
    ],
    ids=["pairs", "runs", "runs side by side", "steps", "calls"],
)
@pytest.mark.parametrize(("last", "told"), [(100, SLOWER), (0.01, FASTER)])
def test_a_larger_difference_with_the_same_noise_never_loses_its_verdict(
    judged: Callable[[float], Verdict], last: float, told: str
) -> None:
    answers = [judged(float(factor)).answer for factor in np.geomspace(1, last, 200)]

    first = answers.index(told)
    assert set(answers[first:]) == {told}
    assert told not in answers[:first]
    assert {SLOWER, FASTER}.isdisjoint(answers[:first])


def test_a_verdict_that_cannot_tell_says_from_which_difference_on_it_could() -> None:
    def why(low: float, high: float) -> str:
        return _pairs(low, high).why

    assert why(0.8, 1.25) == (
        "8 pairs of blocks in turns: the 99 % interval 0.80 to 1.25 is too wide. With this noise, a verdict "
        "needs a difference of about 27 %; repeat more often, or on a quieter machine"
    )
    assert "With this noise, a verdict needs a difference of a factor of about 4.1" in why(0.25, 4.0)
    # Half of this interval is 2 %, and it has to clear the 2 % that copies differ by.
    assert "With this noise, a verdict needs a difference of about 4 %" in _pairs(1.0, 1.0404, matters=0.01).why
    assert "With this noise, a verdict needs a difference of about 4 %" in _pairs(1.01, 1.050804).why
    unmixed = _runs([100, 110, 90, 100], [100, 90, 110, 100], is_mixed=False)
    assert "needs a difference of about 53 %; record them in random order" in unmixed.why


def test_an_interval_far_below_one_has_digits_that_tell_something() -> None:
    assert _pairs(0.0035, 0.0042).why == "8 pairs of blocks in turns: 99 % interval 0.004 to 0.004"
    assert _pairs(0.012, 0.13).why.endswith("interval 0.012 to 0.13")


def test_of_many_rows_those_that_chance_explains_lose_their_verdict() -> None:
    one = Verdict(FASTER, "", 0.8, 0.7, 0.9, p=0.03)
    sure = Verdict(SLOWER, "", 1.8, 1.7, 1.9, p=0.0001)
    others = [Verdict(UNKNOWN, "", 1.0, 0.8, 1.2, p=0.5)] * 18

    assert [verdict.answer for verdict in adjusted([one, sure, *others])[:2]] == [UNKNOWN, SLOWER]
    assert [verdict.answer for verdict in adjusted([one])] == [FASTER]
    # Where nearly all rows differ, each may be less certain.
    assert {verdict.answer for verdict in adjusted([one] * 20)} == {FASTER}


def test_rows_without_a_test_keep_their_verdict() -> None:
    untested = Verdict(FASTER, "one run each", 0.1)

    assert adjusted([untested, Verdict(UNKNOWN, "", 1.0, 0.8, 1.2, p=0.5)])[0] is untested
