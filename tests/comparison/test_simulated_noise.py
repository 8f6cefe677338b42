"""Functions in turns under simulated noise, with fixed seeds: equal ones get no verdict of a difference.

The noise depends on the simulated time, so that neighbouring calls have it in common, as on a real machine.
"""

import gc
import math
import random
from collections import Counter
from collections.abc import Callable

import pytest

from mtprof_nb.comparison.alternation import Alternation
from mtprof_nb.comparison.verdicts import FASTER, SLOWER, judged_pairs

MS = 1_000_000
TRIALS = 100
SECONDS = 3.0


class Machine:
    """A clock that moves while a function runs, faster or slower by the factor of its noise."""

    def __init__(self, noise: Callable[["Machine"], float], seed: int) -> None:
        self.now = 0
        self.random = random.Random(seed)
        self.regime, self.until = 1.0, 0
        self._noise = noise

    def __call__(self) -> int:
        return self.now

    def function(self, length_ns: float) -> Callable[[], None]:
        """A function whose calls take this long without noise."""

        def run() -> None:
            self.now += round(length_ns * self._noise(self))

        return run

    def coin(self) -> bool:
        return self.random.random() < 0.5


def heavy_tailed(machine: Machine) -> float:
    """One call of seven is interrupted, and some of these for very long."""
    jitter = math.exp(machine.random.gauss(0, 0.02))
    return jitter * min(machine.random.paretovariate(1.1), 60) if machine.random.random() < 0.15 else jitter


def drifting(machine: Machine) -> float:
    """The clock frequency falls, and rises and falls every three seconds."""
    seconds = machine.now / 1e9
    return (1 + 0.04 * seconds) * (1 + 0.2 * math.sin(2.3 * seconds)) * math.exp(machine.random.gauss(0, 0.05))


def bimodal(machine: Machine) -> float:
    """Another program shares the core for a while, again and again."""
    if machine.now >= machine.until:
        machine.regime = machine.random.choice([1.0, 1.0, 1.7])
        machine.until = machine.now + round(machine.random.expovariate(1 / 150) * MS)
    return machine.regime * math.exp(machine.random.gauss(0, 0.03))


def skewed(machine: Machine) -> float:
    """Every call is disturbed, some more than others."""
    return math.exp(abs(machine.random.gauss(0, 0.3)))


@pytest.fixture(autouse=True)
def no_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulated clock runs ahead, so that the collector would run after each pair."""
    monkeypatch.setattr(gc, "collect", lambda: 0)


def _answers(noise: Callable[[Machine], float], a_ns: float, b_ns: float, trials: int) -> Counter[str]:
    found: Counter[str] = Counter()
    for seed in range(trials):
        machine = Machine(noise, seed)
        functions = machine.function(a_ns), machine.function(b_ns)
        times = Alternation(*functions, seconds=SECONDS, clock=machine, coin=machine.coin).run()
        found[judged_pairs(times.a_ns, times.b_ns, 0.05).answer] += 1
    return found


# A block has one call, three, or five: the last two lie where noise in the first calls decides between two numbers.
@pytest.mark.parametrize("length_ns", [25 * MS, 8 * MS, 5 * MS])
@pytest.mark.parametrize("noise", [heavy_tailed, drifting, bimodal, skewed])
def test_equal_functions_get_a_verdict_of_a_difference_in_at_most_one_of_fifty(
    noise: Callable[[Machine], float], length_ns: float
) -> None:
    answers = _answers(noise, length_ns, length_ns, TRIALS)

    assert answers[FASTER] + answers[SLOWER] <= TRIALS / 50


@pytest.mark.parametrize(
    ("noise", "change", "least"),
    [
        *((heavy_tailed, 1.05, 12), (heavy_tailed, 1.1, 17)),
        *((drifting, 1.05, 8), (bimodal, 1.05, 14), (bimodal, 1.1, 18)),
        *((skewed, 1.1, 4), (skewed, 1.3, 20)),
    ],
)
def test_a_change_is_found_as_often_as_the_noise_allows(
    noise: Callable[[Machine], float], change: float, least: int
) -> None:
    answers = _answers(noise, 25 * MS, change * 25 * MS, 20)

    assert answers[SLOWER] >= least
    assert answers[FASTER] == 0
