"""Figures 2: from the end of the block to a sorted table, to the events, and to another grouping."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import attrgetter

from benchmarks.figure import Figure, at_least
from benchmarks.profilers import Maker, ours, recorded, torch_profiler
from benchmarks.programs import FLAGS, MLP
from benchmarks.sampling import Lap, Sample, Scale, Way, in_turns

GROUP = "2 processing"


def figures(scale: Scale) -> list[Figure]:
    """The standard program without flags; with each flag that torch's tables depend on, a quarter of it."""
    found = _flag_figures("no flags", scale.table_steps, scale, 0.15, is_bound=True)
    for flags in ("shapes", "stack", "all"):
        found += _flag_figures(flags, max(scale.steps // 4, 1), scale, 0.03)
    return found


def _flag_figures(flags: str, steps: int, scale: Scale, share: float, *, is_bound: bool = False) -> list[Figure]:
    run = MLP.prepare(steps)
    ways: dict[str, Way] = {
        "torch.profiler": partial(_process, torch_profiler(**FLAGS[flags]), run, "time_range.start"),
        "kineto": partial(_process, ours("kineto", **FLAGS[flags]), run, "start_ns"),
    }
    for make in (torch_profiler(**FLAGS[flags]), ours("kineto", **FLAGS[flags])):
        _process(make, MLP.prepare(2), "name")
    rounds = in_turns(ways, scale, scale.share(share))
    events = rounds.median("kineto", "events")
    titles = {
        "table": "end of block to sorted table",
        "every event": "end of block to every event read",
        "grouped again": "grouped by shapes, sorted table",
    }
    if flags in ("no flags", "stack"):
        del titles["grouped again"]
    return [
        rounds.figure(
            GROUP,
            f"mlp, {flags}, {events:,.0f} events: {title}",
            "kineto",
            "torch.profiler",
            what,
            is_speedup=True,
            bound=at_least(12) if is_bound and what == "table" else None,
        )
        for what, title in titles.items()
    ]


def _process(make: Maker, run: Callable[[], None], start: str) -> Sample:
    profiler = recorded(make, run)
    lap = Lap()
    profiler.stop()
    events = profiler.events()
    lap("events")
    profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=20)
    lap("table")
    again = Lap()
    profiler.key_averages(group_by_input_shape=True).table(sort_by="cpu_time_total", row_limit=20)
    again("grouped again")
    # A sequence of views costs nothing until it is read, so it is read: name and start of every event.
    reading, when = Lap(), attrgetter(start)
    count = len([(event.name, when(event)) for event in events])
    reading("read")
    every_event = lap.times["events"] + reading.times["read"]
    return {**again.times, "table": lap.times["table"], "every event": every_event, "events": count}
