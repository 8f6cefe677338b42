"""Time between samples, divided into computing and waiting by what the system counts, on hand-made samples."""

import numpy as np

from mtprof_nb.analysis.functions.awake_time import split_time
from mtprof_nb.model.records import Samples


def counted(taken: list[int], awake: list[int] | None) -> Samples:
    """Samples of one thread that computes; `awake` is the time awake that the system had counted until then."""
    nothing = np.zeros(len(taken), np.int32)
    known = None if awake is None else np.array(awake)
    return Samples(np.array(taken), np.array(taken), nothing, nothing, nothing.astype(np.bool_), known)


def awake_of(samples: Samples) -> list[int] | None:
    awake_ns = samples.with_late_waits().awake_ns
    return None if awake_ns is None else awake_ns.tolist()


def test_a_wait_for_a_processor_that_is_counted_when_it_ends_began_before() -> None:
    # At 500 the thread had waited for 300, which the system had not counted yet.
    samples = counted([100, 500, 900], [0, 100, 800]).with_late_waits()

    split = split_time(samples, np.array([100, 400, 400, 100]), np.array([200, 200]), np.array([0, 0]))

    assert split.python_ns.tolist() == [100 + 200, 200 + 200, 200 + 100]
    assert split.waiting_ns.tolist() == [0, 0, 0]


def test_a_wait_that_lasts_for_several_samples_is_awake_in_each_and_a_sleep_in_none() -> None:
    # Asleep from 200 to 500, then awake: the wait from 600 to 950 is counted at the sample of 1000.
    assert awake_of(counted([100, 500, 700, 900, 1000], [100, 200, 300, 300, 700])) == [100, 200, 400, 600, 700]


def test_a_wait_that_is_counted_after_all_samples_stays_a_sleep() -> None:
    assert awake_of(counted([100, 500, 900], [100, 500, 600])) == [100, 500, 600]


def test_samples_that_do_not_know_the_time_awake_stay_so_and_change_no_other() -> None:
    assert awake_of(counted([100, 500, 900, 950], [0, -1, 800, -1])) == [0, -1, 800, -1]
    assert awake_of(counted([100, 500], None)) is None
    assert awake_of(counted([], [])) == []


def test_time_that_was_computed_between_two_sleeps_is_of_the_nearest_sample_that_computes() -> None:
    moments, nothing = np.array([100, 500, 900, 1300]), np.zeros(4, np.int32)
    is_waiting, counted = np.array([True, True, True, False]), np.array([0, 100, 200, 300])
    # Between 500 and 900 the thread computed for 60, and waited for a processor for 40, as one does that wakes up.
    samples = Samples(moments, moments, nothing, nothing, is_waiting, counted, np.array([0, 0, 60, 160]))

    split = split_time(samples, np.array([100, 400, 400, 400, 100]), np.full(3, 200), np.zeros(3, np.int64))

    assert split.python_ns.tolist() == [50, 50 + 20, 20, 60 + 100 + 100]
    assert split.waiting_ns.tolist() == [100 + 150, 150 + 150, 150 + 300, 0]


def test_a_thread_that_waits_for_a_processor_between_two_sleeps_is_where_it_slept() -> None:
    moments, nothing = np.array([0, 8_000_000]), np.zeros(2, np.int32)
    is_waiting, counted = np.ones(2, np.bool_), np.array([0, 6_000_000])
    ends = np.array([0, 8_000_000, 0]), np.array([4_000_000]), np.array([0])

    waited = split_time(Samples(moments, moments, nothing, nothing, is_waiting, counted, np.array([0, 10])), *ends)
    unseen = split_time(Samples(moments, moments, nothing, nothing, is_waiting, counted, counted), *ends)

    assert (waited.python_ns.tolist(), waited.unseen_ns.tolist()) == ([3_000_000, 3_000_000], [0])
    assert (unseen.python_ns.tolist(), unseen.unseen_ns.tolist()) == ([0, 0], [6_000_000])
