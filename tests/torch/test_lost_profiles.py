"""A profile that nobody has any more locks nobody out, and one that is in use is protected."""

import gc
import threading
import warnings
import weakref
from collections.abc import Iterator

import pytest
import torch
from recording import EVERY_FLAG

import mtprof_nb as mtp

OPTIONS = pytest.mark.parametrize(
    "options",
    [{"hook": "kineto"}, {"hook": "kineto", **EVERY_FLAG}],
    ids=["kineto", "kineto-every-flag"],
)
BEGIN = pytest.mark.parametrize("begin", ["prepare_trace", "start"])


@pytest.fixture
def without_collections() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def assert_next_is_complete(options: dict[str, object], *expected: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with mtp.profile(**options) as prof:
            torch.ones(2).add(1)
    assert [str(warning.message) for warning in caught] == list(expected)
    assert [event.name for event in prof.events() if event.kind == "op"].count("aten::add") == 1


LOST = "profiler 'lost' was lost without stop(), and its recording is discarded: keep it in a variable"


@OPTIONS
@BEGIN
@pytest.mark.usefixtures("without_collections")
def test_a_profile_is_gone_with_its_last_reference_and_the_next_one_says_so(options, begin):
    lost = mtp.profile(name="lost", **options)
    getattr(lost, begin)()
    torch.ones(2).mul(2)
    gone = weakref.ref(lost)
    del lost
    assert gone() is None
    assert mtp.active() is None
    assert_next_is_complete(options, LOST)
    assert_next_is_complete(options)


def test_one_whose_window_was_started_by_hand_or_by_a_schedule_can_be_lost_as_well():
    mine = mtp.profile(name="lost")
    mine.prepare_trace()
    mine.start_trace()
    mine = mtp.profile(name="lost", schedule=mtp.schedule(wait=0, warmup=1, active=2))
    with pytest.warns(mtp.MtprofWarning, match="'lost' was lost"):
        mine.start()
    mine.step()
    del mine
    assert_next_is_complete({}, LOST)


@BEGIN
@pytest.mark.usefixtures("without_collections")
def test_one_that_is_lost_in_a_cycle_is_found_before_the_next_one_is_refused(begin):
    lost = mtp.profile(name="lost")
    getattr(lost, begin)()
    cycle = [lost]
    cycle.append(cycle)
    del lost, cycle
    assert mtp.active() is not None
    assert_next_is_complete({}, LOST)


@pytest.mark.parametrize("options", [{}, {"profile_memory": True}, {"hook": "kineto"}], ids=str)
def test_one_that_is_lost_on_another_thread_locks_nobody_out(options):
    thread = threading.Thread(target=lambda: mtp.profile(name="lost", **options).start())
    thread.start()
    thread.join()
    assert_next_is_complete(options, LOST)
    assert_next_is_complete(options)


PREPARED = "profiler 'first' was prepared but not started, and is ended: call its prepare_trace() again"


@OPTIONS
def test_one_that_is_only_prepared_gives_way_and_can_be_prepared_again(options):
    first = mtp.profile(name="first", **options)
    first.prepare_trace()
    assert mtp.active() is first
    assert_next_is_complete(options, PREPARED)
    with pytest.raises(AssertionError, match="Profiler must be initialized before starting trace"):
        first.start_trace()
    first.prepare_trace()
    first.start_trace()
    torch.ones(2).mul(2)
    first.stop_trace()
    assert [event.name for event in first.events()].count("aten::mul") == 1


def test_one_that_has_given_way_is_refused_while_the_other_runs():
    first = mtp.profile(name="first")
    first.prepare_trace()
    second = mtp.profile(name="second")
    with pytest.warns(mtp.MtprofWarning, match="'first' was prepared"):
        second.start()
    with pytest.raises(mtp.SessionError, match="'second' is already active"):
        first.prepare_trace()
    second.stop()
    first.start()
    first.stop()


@OPTIONS
def test_one_that_is_in_use_is_protected(options):
    waiting = mtp.schedule(wait=5, warmup=1, active=1)
    for used in (mtp.profile(name="used", **options), mtp.profile(name="used", schedule=waiting, **options)):
        used.start()
        with pytest.raises(RuntimeError, match=r"'used' is already active.*mtprof_nb\.active\(\)\.stop\(\)"):
            mtp.profile(**options).start()
        assert mtp.active() is used
        used.step()
        used.stop()


def test_steps_of_a_lost_profile_are_a_plain_loop():
    mtp.profile(name="lost").start()
    assert list(mtp.steps("ab")) == ["a", "b"]
    with pytest.raises(mtp.SessionError, match="needs an active profiler"):
        mtp.step()
    assert_next_is_complete({}, LOST)
