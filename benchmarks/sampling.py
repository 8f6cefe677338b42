"""Samples of several ways to do the same, taken in turns in one process."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.figure import Bound, Figure, Spread

#: Batches that many rounds are divided into where each round alone says too little.
_BATCHES = 9

#: One sample: named times in seconds, or counts.
Sample = dict[str, float]
#: Takes a sample.
Way = Callable[[], Sample]


@dataclass(frozen=True)
class Scale:
    """How much is measured."""

    #: Steps of the standard program.
    steps: int
    #: As many as give 80,000 events: what the way to a table is measured on.
    table_steps: int
    #: Rounds that are made in any case, and those that are enough.
    least_rounds: int
    most_rounds: int
    #: What is not of a fixed size should take this long, all together.
    seconds: float
    #: Events of the recordings whose growth is measured.
    sizes: tuple[int, ...]
    #: Flags with which that is measured which needs many processes.
    flags: tuple[str, ...] = ("no flags", "stack", "all")
    #: Events of the recordings of hook `native` that are stopped, and of the largest cell.
    native_sizes: tuple[int, ...] = (10_000, 100_000, 1_000_000, 5_000_000)
    cell_events: int = 1_000_000
    #: Whether the native recorder is built.
    builds: bool = True

    def share(self, share: float) -> float:
        """Seconds of a part that may take this share of the whole."""
        return self.seconds * share


FULL = Scale(
    steps=200,
    table_steps=250,
    least_rounds=3,
    most_rounds=25,
    seconds=250,
    sizes=(10_000, 100_000, 1_000_000, 2_000_000),
)
QUICK = Scale(
    steps=50,
    table_steps=250,
    least_rounds=2,
    most_rounds=9,
    seconds=25,
    sizes=(10_000, 100_000),
    flags=("no flags",),
    native_sizes=(10_000, 100_000, 1_000_000),
    builds=False,
)
TINY = Scale(
    steps=2,
    table_steps=2,
    least_rounds=1,
    most_rounds=1,
    seconds=0,
    sizes=(600, 1_200),
    native_sizes=(600, 1_200),
    cell_events=1_200,
    builds=False,
)


def cpu_clock() -> float:
    """Seconds of processor time of this process: what neighbours on a shared machine take counts less."""
    return time.process_time_ns() / 1e9


def wall_clock() -> float:
    """Seconds that passed, waiting for the disk included."""
    return time.perf_counter_ns() / 1e9


class Lap:
    """Names the time between moments."""

    def __init__(self, clock: Callable[[], float] = cpu_clock) -> None:
        self.times: Sample = {}
        self._clock = clock
        self._began = clock()

    def __call__(self, name: str) -> None:
        """Note the time since the beginning."""
        self.times[name] = self._clock() - self._began


@dataclass(frozen=True)
class Rounds:
    """Samples of each way by round."""

    rounds: list[dict[str, Sample]]

    def __len__(self) -> int:
        return len(self.rounds)

    def values(self, way: str, what: str) -> list[float]:
        """A way's measured values, one a round."""
        return [samples[way][what] for samples in self.rounds]

    def median(self, way: str, what: str) -> float:
        """The middle one of them."""
        return Spread.of(self.values(way, what)).median

    def ratio(self, what: str, way: str, peer: str, peer_what: str = "") -> Spread:
        """`way` over `peer`, round by round: what slows a whole round down cancels out."""
        pairs = zip(self.values(way, what), self.values(peer, peer_what or what), strict=True)
        return Spread.of([one / max(other, 1e-9) for one, other in pairs])

    def added(self, what: str, way: str, peer: str, base: str) -> Spread:
        """Amount that `way` adds to `base` over the amount that `peer` adds to it.

        Little is added, and whatever disturbs a run adds more: each of some batches of rounds gives one ratio.
        """
        size = max(len(self) // _BATCHES, 1)
        batches = [Rounds(self.rounds[first : first + size]) for first in range(0, len(self) - size + 1, size)]
        pairs = [(one.least_added(what, way, base), one.least_added(what, peer, base)) for one in batches]
        # Where less than nothing was added, the machine was disturbed all the time: that says nothing.
        ratios = [one / other for one, other in pairs if one > 0 and other > 0]
        return Spread.of(ratios or [math.nan])

    def least_added(self, what: str, way: str, base: str) -> float:
        """Amount that `way` adds to `base` where both are least disturbed."""
        return min(self.values(way, what)) - min(self.values(base, what))

    def figure(
        self,
        group: str,
        title: str,
        way: str,
        peer: str,
        what: str,
        *,
        bound: Bound | None = None,
        is_speedup: bool = False,
        peer_what: str = "",
        behind: str = "",
    ) -> Figure:
        """The ratio of two ways as a line of the table: `way` over `peer`, or how much faster `way` is."""
        peer_what = peer_what or what
        value = self.ratio(peer_what, peer, way, what) if is_speedup else self.ratio(what, way, peer, peer_what)
        own, other = self.median(way, what), self.median(peer, peer_what)
        behind = behind or f"{_milliseconds(own)} / {_milliseconds(other)}"
        return Figure(group, title, peer, value, len(self), bound=bound, behind=behind)


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:,.1f} ms"


def in_turns(ways: Mapping[str, Way], scale: Scale, seconds: float) -> Rounds:
    """Rounds in which every way is taken once, each round beginning with another one, until the time is used up."""
    names = list(ways)
    found: list[dict[str, Sample]] = []
    deadline = time.monotonic() + seconds
    while len(found) < scale.least_rounds or (len(found) < scale.most_rounds and time.monotonic() < deadline):
        first = len(found) % len(names)
        samples: dict[str, Sample] = {}
        for name in names[first:] + names[:first]:
            gc.collect()
            samples[name] = ways[name]()
        found.append(samples)
    return Rounds(found)
