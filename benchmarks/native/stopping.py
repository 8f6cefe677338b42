"""`stop` of hook `native` with every flag, and the memory that the recording takes, up to millions of events."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any
from unittest import mock

import numpy as np

from benchmarks import child, memory
from benchmarks.figure import Bound, Figure, Spread, at_most
from benchmarks.native.running import GROUP
from benchmarks.profilers import ours, recorded
from benchmarks.programs import FLAGS, MLP
from benchmarks.sampling import Lap, Rounds, Sample, Scale, Way, in_turns

#: Events of one step of the standard program.
EVENTS_A_STEP = 327
#: Memory that is used before `stop` is measured.
_BYTES_AN_EVENT = 300
#: Most address space of a process: it fails rather than that the machine runs out of memory.
_ADDRESS_SPACE = 10 * 10**9
#: Of recordings up to this size the middle one of some counts.
_SMALL = 100_000
#: In smaller recordings the parts of `stop` that do not grow with the events are most of it.
_LARGE = 1_000_000


def figures(scale: Scale) -> list[Figure]:
    """Cost of `stop` an event, its growth, and bytes an event."""
    sizes = scale.native_sizes
    ways: dict[str, Way] = {f"{size:,}": partial(_stop, size, scale.least_rounds) for size in sizes}
    # A round takes a minute, nearly all of it for the programs that are recorded.
    rounds = in_turns(ways, replace(scale, least_rounds=1), 0)
    costs = [
        _amount(rounds, f"stop, all: {size:,} events", size, "stop", "µs an event", _within(0.5, size >= _LARGE))
        for size in sizes
    ]
    base = max(sizes[0], min(_SMALL, sizes[-1]))
    growth = [_growth(rounds, size, base) for size in sizes if size > base]
    search = _amount(rounds, "stop, all: search for modules and optimizers, in each stop", sizes[0], "search", "ms")
    return [*costs, *growth, search, *_bytes(rounds, sizes[-1])]


def _within(limit: float, applies: bool) -> Bound | None:
    return at_most(limit) if applies else None


def _amount(
    rounds: Rounds, title: str, size: int, what: str, unit: str, bound: Bound | None = None, behind: str = ""
) -> Figure:
    value = Spread.of(rounds.values(f"{size:,}", what))
    return Figure(GROUP, title, "", value, len(rounds), unit=unit, bound=bound, behind=behind)


def _growth(rounds: Rounds, size: int, base: int) -> Figure:
    own, other = rounds.median(f"{size:,}", "rest"), rounds.median(f"{base:,}", "rest")
    title, behind = f"stop, all, without that search: {size:,} events", f"{own:.2f} / {other:.2f} µs an event"
    peer = f"{base:,} events"
    value = rounds.ratio("rest", f"{size:,}", f"{base:,}")
    return Figure(GROUP, title, peer, value, len(rounds), bound=at_most(1.3), behind=behind)


def _bytes(rounds: Rounds, size: int) -> list[Figure]:
    if not memory.is_known():
        return []
    title, unit = f"memory, all, {size:,} events", "B an event"
    return [
        _amount(rounds, f"{title}: while recording", size, "recording", unit, at_most(250)),
        _amount(rounds, f"{title}: peak of stop", size, "peak", unit),
        _amount(rounds, f"{title}: kept after stop", size, "kept", unit),
    ]


def _stop(size: int, times: int) -> Sample:
    times = times if size <= _SMALL else 1
    samples = [child.call("benchmarks.native.stopping:measure_stop", size) for _ in range(times)]
    return {what: median(sample[what] for sample in samples) for what in samples[0]}


def measure_stop(size: int) -> Sample:
    """Time and memory of a recording of about `size` events, in this process, which has recorded little before."""
    _limit_address_space()
    make, run = ours("native", **FLAGS["all"]), MLP.prepare(max(size // EVENTS_A_STEP, 1))
    recorded(make, MLP.prepare(3)).stop()
    # A virtual machine may get memory from its host only when it is first used: use as much before, and give it back.
    np.ones(size * _BYTES_AN_EVENT, np.int8)
    held = _Held()
    profiler = recorded(make, run)
    held("recording")
    with _timed_searches() as searches:
        lap = Lap()
        profiler.stop()
        lap("stop")
    held("kept")
    events, stop, search = len(profiler.trace), lap.times["stop"], sum(searches)
    times = {"stop": stop / events * 1e6, "rest": (stop - search) / events * 1e6, "search": search * 1e3}
    return times | {what: nbytes / events for what, nbytes in held.found().items()}


class _Held:
    """Bytes that the process holds in addition to those that it held at first; none where the system does not tell."""

    def __init__(self) -> None:
        self._is_known = memory.is_known()
        self._bytes: Sample = {}
        if self._is_known:
            self._before = memory.resident()
            memory.forget_peak()

    def __call__(self, name: str) -> None:
        """Note the bytes that are held now."""
        if self._is_known:
            self._bytes["peak"] = memory.peak() - self._before
            self._bytes[name] = memory.resident() - self._before

    def found(self) -> Sample:
        """The noted bytes, and the peak until the last note."""
        return self._bytes


def _limit_address_space() -> None:
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, resource.getrlimit(resource.RLIMIT_AS)[1]))


@contextmanager
def _timed_searches() -> Iterator[list[float]]:
    """Seconds of each search for living objects in the block."""
    from mtprof_nb.capture.native.recorder_loading import recorder

    found = recorder()
    assert found is not None
    seconds, living = list[float](), found.living

    def timed(*bases: type) -> Any:
        lap = Lap()
        objects = living(*bases)
        lap("search")
        seconds.append(lap.times["search"])
        return objects

    with mock.patch.object(found, "living", timed):
        yield seconds
