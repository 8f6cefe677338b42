"""From the end of the block to a sorted table, with hook `native`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from benchmarks.figure import Figure, at_least
from benchmarks.native.running import GROUP
from benchmarks.profilers import Maker, ours, recorded, torch_profiler
from benchmarks.programs import FLAGS, MLP
from benchmarks.sampling import Lap, Sample, Scale, Way, in_turns

_BOUNDS = {"no flags": at_least(60), "all": at_least(100)}
_FASTER = "native"


def figures(scale: Scale) -> list[Figure]:
    """The standard program without flags and with all of them."""
    return [_flag_figure(flags, scale) for flags in _BOUNDS]


def _flag_figure(flags: str, scale: Scale) -> Figure:
    makers = {"torch.profiler": torch_profiler(**FLAGS[flags]), _FASTER: ours("native", **FLAGS[flags])}
    for make in makers.values():
        _process(make, MLP.prepare(2))
    run = MLP.prepare(scale.table_steps)
    ways: dict[str, Way] = {way: partial(_process, make, run) for way, make in makers.items()}
    # With every flag, torch.profiler needs half a minute a round.
    least = 1 if flags == "all" else scale.least_rounds
    rounds = in_turns(ways, replace(scale, least_rounds=least), 0)
    title = f"mlp, {flags}, {rounds.median(_FASTER, 'events'):,.0f} events: end of block to sorted table"
    return rounds.figure(GROUP, title, _FASTER, "torch.profiler", "table", is_speedup=True, bound=_BOUNDS[flags])


def _process(make: Maker, run: Callable[[], None]) -> Sample:
    profiler = recorded(make, run)
    lap = Lap()
    profiler.stop()
    profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=20)
    lap("table")
    return {**lap.times, "events": len(getattr(profiler, "trace", ()))}
