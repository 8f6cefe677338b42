"""Figures 3: memory that a recording keeps, and the most that it needs on the way."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks import child
from benchmarks.figure import Bound, Figure, Spread, at_most
from benchmarks.profilers import Maker, ours, recorded, torch_profiler
from benchmarks.programs import FLAGS, MLP
from benchmarks.sampling import Rounds, Sample, Scale, in_turns

GROUP = "3 memory"
_STATUS = Path("/proc/self/status")
_MAKERS: dict[str, Callable[..., Maker]] = {"torch.profiler": torch_profiler, "kineto": partial(ours, "kineto")}


def figures(scale: Scale) -> list[Figure]:
    """Bytes an event, each profiler in processes of its own; none where the system does not tell (only Linux does)."""
    if not is_known():
        return []
    found = []
    for flags in (flags for flags in ("no flags", "all") if flags in scale.flags):
        found += _flag_figures(flags, scale)
    return found


def _flag_figures(flags: str, scale: Scale) -> list[Figure]:
    ways = {way: partial(_measured, way, flags, scale.steps) for way in _MAKERS}
    # One round: the same program keeps the same, up to one byte in a hundred.
    rounds = in_turns(ways, replace(scale, least_rounds=1), 0)
    title = f"mlp, {flags}, {rounds.median('kineto', 'events'):,.0f} events"
    kept = Spread.of(rounds.values("kineto", "kept"))
    return [
        Figure(GROUP, f"{title}: kept after stop", "", kept, len(rounds), unit="B an event", bound=at_most(250)),
        _beside_torch(rounds, f"{title}: kept after stop", "kept"),
        _beside_torch(rounds, f"{title}: kept after the table", "kept after table"),
        _beside_torch(rounds, f"{title}: peak from start to table", "peak"),
    ]


def _beside_torch(rounds: Rounds, title: str, what: str, bound: Bound | None = None) -> Figure:
    behind = " / ".join(f"{rounds.median(way, what):,.0f} B" for way in ("kineto", "torch.profiler"))
    return rounds.figure(GROUP, title, "kineto", "torch.profiler", what, bound=bound, behind=f"{behind} an event")


def _measured(way: str, flags: str, steps: int) -> Sample:
    """`measure` in a process of its own; again, where torch.profiler stumbles over the name of code that is gone."""
    for _ in range(3):
        try:
            found: Sample = child.call("benchmarks.memory:measure", way, flags, steps)
            return found
        except RuntimeError as error:
            if way != "torch.profiler" or "UnicodeDecodeError" not in str(error):
                raise
            failure = error
    raise failure


def measure(way: str, flags: str, steps: int) -> Sample:
    """Bytes an event over what the process held before, in this process, which has profiled nothing before."""
    make, run = _MAKERS[way](**FLAGS[flags]), MLP.prepare(steps)
    warm = recorded(make, MLP.prepare(2))
    warm.stop()
    warm.key_averages().table()
    del warm
    before = resident()
    forget_peak()
    profiler = recorded(make, run)
    profiler.stop()
    kept = resident() - before
    profiler.key_averages().table(sort_by="self_cpu_time_total")
    highest = peak() - before
    kept_after_table = resident() - before
    events = len(profiler.events())
    return {
        "events": events,
        "kept": kept / events,
        "kept after table": kept_after_table / events,
        "peak": highest / events,
    }


def resident() -> int:
    """Bytes that the process needs now: what it has let go of, and the allocator kept for later, is given back."""
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
    return _read("VmRSS")


def is_known() -> bool:
    """Whether the system tells how much memory a process holds."""
    return _STATUS.exists()


def peak() -> int:
    """The most bytes that the process has held since `forget_peak`."""
    return _read("VmHWM")


def forget_peak() -> None:
    """Let `peak` count from here on."""
    Path("/proc/self/clear_refs").write_text("5")


def _read(key: str) -> int:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(key))
    return int(line.split()[1]) * 1024
