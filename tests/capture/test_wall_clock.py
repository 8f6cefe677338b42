"""Kineto's times follow the wall clock, which may be corrected, or set anew, while it records."""

import numpy as np
import pytest

from mtprof_nb.capture.clock import Clock, WallClock
from mtprof_nb.capture.hook import Request
from mtprof_nb.capture.window import Window

SECOND_NS = 1_000_000_000


class ReadTwice(Clock):
    """Reads 1,000 at the start, and the given moment at the end, when the wall clock has gained so much."""

    def __init__(self, ended_ns, gained_ns):
        self._moments = iter([1_000, ended_ns])
        self._ahead = iter([0, gained_ns])

    def now_ns(self):
        return next(self._moments)

    def wall_ahead_ns(self):
        return next(self._ahead)


def noted(ended_ns, gained_ns):
    wall = WallClock(ReadTwice(ended_ns, gained_ns))
    wall.note()
    wall.note()
    return wall


def test_moments_are_placed_among_kinetos_events_by_the_clock_at_both_ends():
    wall = noted(2_000, gained_ns=500)

    assert wall.among_kineto([1_000, 1_500, 2_000, 3_000]).tolist() == [1_000, 1_750, 2_500, 3_500]
    assert wall.of_session(wall.among_kineto([1_000, 1_500, 2_000])).tolist() == [1_000, 1_500, 2_000]


def test_only_kineto_follows_the_wall_clock():
    window = Window("auto", Request(clock=ReadTwice(2_000, 500)))
    window.hooks = {"dispatch": None}

    assert window.event_times([1_000, 1_500]).tolist() == [1_000, 1_500]


@pytest.mark.parametrize(
    ("gained_ns", "kineto_ns", "has_turned"),
    [
        # A second was recorded while the clock went on by four: each nanosecond of Kineto's is a quarter.
        (3 * SECOND_NS, [1_000, 1_000 + 2 * SECOND_NS, 1_000 + 4 * SECOND_NS], False),
        # It ended three seconds before it began: Kineto has time run backwards.
        (-4 * SECOND_NS, [1_000, 1_000 - 3 * SECOND_NS // 2, 1_000 - 3 * SECOND_NS], True),
    ],
)
def test_times_that_a_jump_stretched_or_turned_are_put_right(gained_ns, kineto_ns, has_turned):
    wall = noted(1_000 + SECOND_NS, gained_ns)

    assert (wall.has_jumped, wall.has_turned) == (True, has_turned)
    assert wall.among_kineto([1_000, 1_500]).tolist() == [1_000, 1_500]
    wanted = [1_000, 1_000 + SECOND_NS // 2, 1_000 + SECOND_NS]
    assert wall.of_session(np.array(kineto_ns, np.int64)).tolist() == wanted
