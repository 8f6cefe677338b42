"""The profilers beside each other: the same calls start, stop and read each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.sampling import Lap, Sample

#: Makes a profiler that has `start` and `stop`.
Maker = Callable[[], Any]


def torch_profiler(**flags: Any) -> Maker:
    """torch.profiler, as it comes."""
    import torch

    return lambda: torch.profiler.profile(**flags)


def ours(hook: str, **flags: Any) -> Maker:
    """This package, through one of its hooks."""
    import mtprof_nb

    return lambda: mtprof_nb.profile(hook=hook, **flags)


#: Equal parts that a program is run and timed in.
PARTS = 4


def run_plain(run: Callable[[], None]) -> Sample:
    """The program alone; `run` is one part of it. What disturbs a run adds to it, so the quickest part counts."""
    return {"run": min(_timed(run) for _ in range(PARTS))}


def events_of_part(profiler: Any) -> Sample:
    """The events of one part, as far as the profiler tells them."""
    return {"events": len(getattr(profiler, "trace", ())) / PARTS}


def run_recorded(make: Maker, run: Callable[[], None], read: Callable[[Any], Sample] = events_of_part) -> Sample:
    """The program while it is recorded, and what `read` finds: neither the start nor the stop is counted."""
    profiler = make()
    profiler.start()
    try:
        sample = run_plain(run)
    finally:
        profiler.stop()
    return {**sample, **read(profiler)}


def _timed(run: Callable[[], None]) -> float:
    lap = Lap()
    run()
    lap("run")
    return lap.times["run"]


def recorded(make: Maker, run: Callable[[], None]) -> Any:
    """A profiler that has recorded `run` and is still to be stopped."""
    profiler = make()
    profiler.start()
    run()
    return profiler
