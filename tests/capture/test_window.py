"""A window's clock: Kineto's events follow the wall clock, which may be corrected meanwhile."""

from mtprof_nb.capture.hook import Clock, Request
from mtprof_nb.capture.window import Window


class CorrectedClock(Clock):
    """Reads 1,000 at the start and 2,000 at the end, when the wall clock has gained 500."""

    def __init__(self):
        self._moments = iter([1_000, 2_000])
        self._ahead = iter([0, 500])

    def now_ns(self):
        return next(self._moments)

    def wall_ahead_ns(self):
        return next(self._ahead)


def window_with(hooks):
    window = Window("auto", Request(clock=CorrectedClock()))
    window.hooks = dict.fromkeys(hooks)
    window._note_clocks()
    window._note_clocks()
    return window


def test_moments_are_placed_among_kinetos_events_by_the_clock_at_both_ends():
    assert window_with(["kineto"]).placed([1_000, 1_500, 2_000, 3_000]).tolist() == [1_000, 1_750, 2_500, 3_500]


def test_a_wall_clock_that_jumped_places_nothing():
    window = window_with(["kineto"])
    window._ahead_ns[-1] = 3_600_000_000_000
    assert window.placed([1_000, 1_500]).tolist() == [1_000, 1_500]


def test_other_hooks_share_the_sessions_clock():
    assert window_with(["dispatch"]).placed([1_000, 1_500]).tolist() == [1_000, 1_500]
