"""Two functions in turns, with a clock that the functions themselves move."""

import gc
import sys
from collections.abc import Callable, Iterator
from itertools import cycle
from types import SimpleNamespace

import pytest

from mtprof_nb.comparison.alternation import FEWEST_PAIRS, MOST_PAIRS, Alternation, TimedBlock, device_wait

MS = 1_000_000


class Clock:
    """Time that passes only while a function runs."""

    def __init__(self) -> None:
        self.now = 0
        self.calls: list[str] = []

    def __call__(self) -> int:
        return self.now

    def function(self, name: str, *lengths: int) -> Callable[[], None]:
        """A function whose calls take these nanoseconds in turn."""
        length = cycle(lengths)

        def run() -> None:
            self.calls.append(name)
            self.now += next(length)

        return run


@pytest.fixture(autouse=True)
def collected_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of the tests runs ahead, so that the collector would run after each pair."""
    monkeypatch.setattr(gc, "collect", lambda: 0)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def _heads() -> bool:
    return False


def test_a_block_has_calls_of_about_twenty_milliseconds(clock: Clock) -> None:
    found = Alternation(clock.function("a", 2 * MS), clock.function("b", 10 * MS), 3, clock=clock, coin=_heads).run()

    assert (found.a_block, found.b_block) == (TimedBlock(11, 1), TimedBlock(3, 1))
    assert found.a_ns == (2 * MS,) * 3
    assert found.b_ns == (10 * MS,) * 3


def test_functions_that_take_about_as_long_are_measured_in_one_way(clock: Clock) -> None:
    found = Alternation(clock.function("a", 4 * MS), clock.function("b", 9 * MS), 3, clock=clock).run()

    # A call takes 6 ms, in the geometric mean.
    assert found.a_block == found.b_block == TimedBlock(3, 1)


def test_a_function_slower_than_a_block_is_called_once_a_block(clock: Clock) -> None:
    found = Alternation(clock.function("a", 90 * MS), clock.function("b", MS), 2, clock=clock).run()

    assert found.a_block == TimedBlock(1, 1)
    assert found.b_block.calls == 21


def test_short_calls_are_timed_several_at_once(clock: Clock) -> None:
    found = Alternation(clock.function("a", 1_000), clock.function("b", 100), 2, clock=clock).run()

    assert (found.a_block, found.b_block) == (TimedBlock(401, 50), TimedBlock(401, 500))
    assert found.a_ns == (1_000, 1_000)
    assert found.b_ns == (100, 100)


def test_a_block_counts_as_its_median_call(clock: Clock) -> None:
    # A block has eleven calls; one of five takes very long.
    function = clock.function("a", 2 * MS, 2 * MS, 2 * MS, 2 * MS, 500 * MS)

    alternation = Alternation(function, clock.function("b", 2 * MS), 4, clock=clock)

    assert set(alternation.run().a_ns) == {2 * MS}


def test_the_coin_decides_which_block_of_a_pair_comes_first(clock: Clock) -> None:
    coin = iter([False, True, True, False])
    alternation = Alternation(
        clock.function("a", 30 * MS), clock.function("b", 30 * MS), 4, clock=clock, coin=coin.__next__
    )
    clock.calls.clear()

    alternation.run()

    assert clock.calls == ["a", "b", "b", "a", "b", "a", "a", "b"]


def test_both_orders_occur_without_a_coin_of_the_tests(clock: Clock) -> None:
    alternation = Alternation(clock.function("a", 30 * MS), clock.function("b", 30 * MS), 100, clock=clock)
    clock.calls.clear()

    alternation.run()

    # The chance that all hundred coins agree is 2 in 2**100.
    assert set(zip(clock.calls[::2], clock.calls[1::2], strict=True)) == {("a", "b"), ("b", "a")}


@pytest.mark.parametrize(
    ("call_ns", "seconds", "pairs"),
    [(MS, 10.5, MOST_PAIRS), (MS, 2.1, 50), (MS, 0.01, FEWEST_PAIRS), (3_000 * MS, 10.0, FEWEST_PAIRS)],
)
def test_as_many_pairs_are_measured_as_fit_in_the_time(clock: Clock, call_ns: int, seconds: float, pairs: int) -> None:
    alternation = Alternation(clock.function("a", call_ns), clock.function("b", call_ns), seconds=seconds, clock=clock)

    assert alternation.pairs == pairs
    assert alternation.run().seconds == pytest.approx(alternation.seconds)


def test_fewer_pairs_are_measured_if_calls_take_longer_than_before(clock: Clock) -> None:
    lengths = iter([MS] * 16)

    def slower() -> None:
        clock.now += next(lengths, 10 * MS)

    # The first call and 15 more tell how long it takes: then a pair takes 231 ms instead of 42.
    found = Alternation(slower, clock.function("b", MS), seconds=4.2, clock=clock).run()

    assert found.planned == 100
    assert len(found.a_ns) == 37
    assert not found.is_interrupted


def test_as_many_pairs_as_were_asked_for_are_measured_however_long_they_take(clock: Clock) -> None:
    lengths = iter([MS] * 100)

    def slower() -> None:
        clock.now += next(lengths, 10 * MS)

    assert len(Alternation(slower, clock.function("b", MS), 60, seconds=0.1, clock=clock).run().a_ns) == 60


def test_the_first_call_is_not_measured(clock: Clock) -> None:
    lengths = iter([900 * MS])

    def compiled() -> None:
        clock.now += next(lengths, 2 * MS)

    assert Alternation(compiled, clock.function("b", 2 * MS), 2, clock=clock).run().a_block == TimedBlock(11, 1)


def test_progress_is_told_after_each_pair(clock: Clock) -> None:
    shares: list[float] = []

    Alternation(clock.function("a", MS), clock.function("b", MS), 4, clock=clock).run(shares.append)

    assert shares == [0.25, 0.5, 0.75, 1.0]


def _interrupted_after(calls: int, clock: Clock) -> Callable[[], None]:
    left = iter(range(calls))

    def run() -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt
        clock.now += 30 * MS

    return run


def test_an_interrupt_leaves_the_pairs_that_are_complete(clock: Clock) -> None:
    # Two calls to learn how long it takes, three blocks, and the interrupt.
    found = Alternation(clock.function("a", 30 * MS), _interrupted_after(5, clock), 10, clock=clock).run()

    assert len(found.a_ns) == len(found.b_ns) == 3
    assert (found.is_interrupted, found.planned) == (True, 10)
    assert gc.isenabled()


def test_an_interrupt_before_the_first_pair_is_raised(clock: Clock) -> None:
    with pytest.raises(KeyboardInterrupt):
        Alternation(_interrupted_after(2, clock), clock.function("b", 30 * MS), 10, clock=clock).run()


def test_an_error_of_a_function_arrives_and_the_collector_runs_again(clock: Clock) -> None:
    calls = iter(range(4))

    def fails() -> None:
        clock.now += 30 * MS
        if next(calls) == 3:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Alternation(fails, clock.function("b", 30 * MS), 10, clock=clock).run()
    assert gc.isenabled()


@pytest.fixture
def collector_off() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def test_the_collector_does_not_run_inside_a_block(clock: Clock) -> None:
    seen: list[bool] = []

    def look() -> None:
        clock.now += 30 * MS
        seen.append(gc.isenabled())

    Alternation(look, clock.function("b", 30 * MS), 3, clock=clock).run()

    assert seen == [True, True, False, False, False]


@pytest.mark.usefixtures("collector_off")
def test_a_collector_that_is_off_stays_off(clock: Clock) -> None:
    Alternation(clock.function("a", 30 * MS), clock.function("b", 30 * MS), 3, clock=clock).run()

    assert not gc.isenabled()


def test_a_measured_time_ends_when_the_device_has_done_its_work(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    def synchronize() -> None:
        clock.now += 40 * MS

    accelerator = SimpleNamespace(is_available=lambda: True, synchronize=synchronize)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(accelerator=accelerator))

    found = Alternation(clock.function("a", MS), clock.function("b", MS), 2, clock=clock).run()

    assert found.a_ns == (41 * MS, 41 * MS)


def test_without_a_device_nothing_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)

    assert device_wait()() is None
