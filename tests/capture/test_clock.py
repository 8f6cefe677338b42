"""The clock of a session."""

import itertools
import time

import pytest

from mtprof_nb.capture.clock import Clock


def test_a_pause_between_the_readings_of_both_clocks_does_not_shift_the_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monotonic = itertools.chain([100, 9_000_100], itertools.count(9_000_200, 10))
    wall = itertools.chain([5_000_000_105], itertools.count(5_009_000_205, 20))
    monkeypatch.setattr(time, "perf_counter_ns", lambda: next(monotonic))
    monkeypatch.setattr(time, "time_ns", lambda: next(wall))

    assert Clock().offset_ns == 5_000_000_000
