"""Figures 6: what an event costs in recordings of 10,000 to 2,000,000 events."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks import child
from benchmarks.figure import Figure, Spread, at_most
from benchmarks.profilers import ours, recorded
from benchmarks.programs import FLAGS, MLP
from benchmarks.repeated import recording, repeated
from benchmarks.sampling import Lap, Rounds, Sample, Scale, Way, in_turns
from mtprof_nb.model.trace import Trace

GROUP = "6 growth"
#: Events of one step of the standard program.
_EVENTS_A_STEP = {"no flags": 327, "stack": 596}
#: What Kineto and the reading of its events need while `stop` runs.
_BYTES_AN_EVENT = 2_500
#: With more events and stacks a recording ends early: Kineto would need more memory than there is.
_MOST_WITH_STACK = 100_000
#: Of recordings up to this size the middle one of some counts: theirs is the time that all others are divided by.
_SMALL = 100_000
_WINDOW_EVENTS = 2_000


def figures(scale: Scale) -> list[Figure]:
    """Cost an event beside that of the smallest recording: stop on real recordings, the rest on repeated ones."""
    stops = [_stop_figures(scale, flags) for flags in _EVENTS_A_STEP if flags in scale.flags]
    return [*itertools.chain.from_iterable(stops), *_analysis_figures(scale)]


def _stop_figures(scale: Scale, flags: str) -> list[Figure]:
    sizes = [size for size in scale.sizes if flags == "no flags" or size <= _MOST_WITH_STACK]
    ways = {f"{size:,}": partial(_stop, flags, size, scale.least_rounds) for size in sizes}
    # A round takes a minute, most of it for the largest: two have to do, and with stacks one.
    least = max(scale.least_rounds - 1, 1) if flags == "no flags" else 1
    rounds = in_turns(ways, replace(scale, least_rounds=least), 0)
    return _growth(rounds, {"stop": f"stop, {flags}", "kineto": f"stop, {flags}, torch's own part"})


def _stop(flags: str, size: int, times: int) -> Sample:
    times = times if size <= _SMALL else 1
    samples = [child.call("benchmarks.growth:measure_stop", flags, size) for _ in range(times)]
    return {what: median(sample[what] for sample in samples) for what in samples[0]}


def measure_stop(flags: str, size: int) -> Sample:
    """Time of `stop` an event, in this process: the first recording of its size, in memory that is new to the process.

    It is not new to the machine: a virtual one may get its memory from its host only when it is first used, which takes
    seconds a gigabyte, so as much as Kineto will need is used and given back before.
    """
    make, run = ours("kineto", **FLAGS[flags]), MLP.prepare(max(size // _EVENTS_A_STEP[flags], 1))
    recorded(make, MLP.prepare(3)).stop()
    used = np.ones(size * _BYTES_AN_EVENT, np.int8)
    profiler = recorded(make, run)
    del used
    with _timed_exit() as torchs:
        lap = Lap()
        profiler.stop()
        lap("stop")
    return {what: seconds / len(profiler.trace) for what, seconds in {**lap.times, **torchs}.items()}


@contextmanager
def _timed_exit() -> Iterator[Sample]:
    """The time that torch's low-level profiler takes to end, which is Kineto's and not ours to change."""
    from torch.autograd.profiler import profile

    times: Sample = {"kineto": 0.0}
    leave = profile.__exit__

    def timed(*args: Any) -> Any:
        lap = Lap()
        try:
            return leave(*args)
        finally:
            lap("exit")
            times["kineto"] += lap.times["exit"]

    profile.__exit__ = timed
    try:
        yield times
    finally:
        profile.__exit__ = leave


def _analysis_figures(scale: Scale) -> list[Figure]:
    pattern = recording(max(scale.sizes[0] // _EVENTS_A_STEP["stack"], 1), with_stack=True, record_shapes=True)
    with tempfile.TemporaryDirectory() as folder:
        ways: dict[str, Way] = {
            f"{size:,}": partial(_analyse, repeated(pattern, size), Path(folder)) for size in scale.sizes
        }
        rounds = in_turns(ways, scale, scale.share(0.08))
    titles = {
        "averages": "averages and sorted table",
        "timeline": "timeline, whole",
        "stacks": "stacks",
        "export": "chrome trace export",
    }
    window = [_figure(rounds, "window", "zoomed timeline window, each", size) for size in list(ways)[1:]]
    return [*_growth(rounds, titles), *window]


def _analyse(kept: Trace, folder: Path) -> Sample:
    """Time an event of each analysis, none of which has seen the trace before."""
    from mtprof_nb.analysis.stacks.calltree import call_tree
    from mtprof_nb.analysis.stacks.stack_metrics import stack_totals
    from mtprof_nb.export import chrome_trace
    from mtprof_nb.tables.averages import key_averages
    from mtprof_nb.views.tabs.timeline.timeline_blocks import Timeline

    def timed(work: Callable[[Trace], object]) -> float:
        trace = replace(kept)
        lap = Lap()
        work(trace)
        lap("work")
        return lap.times["work"] / len(trace)

    chart = Timeline(kept)
    begin, end = chart.whole_ns
    width = (end - begin) * _WINDOW_EVENTS // len(kept)
    chart.window(begin, end)
    lap = Lap()
    for part in range(10):
        left = begin + (end - begin - width) * part // 10
        chart.window(left, left + width)
    lap("window")
    return {
        **lap.times,
        "averages": timed(lambda trace: key_averages(trace).table(sort_by="self_cpu_time_total")),
        "timeline": timed(lambda trace: (one := Timeline(trace)).window(*one.whole_ns)),
        "stacks": timed(lambda trace: (call_tree(trace), stack_totals(trace))),
        "export": timed(lambda trace: chrome_trace.write(trace, folder / f"{len(kept)}.json")),
    }


def _growth(rounds: Rounds, titles: dict[str, str]) -> list[Figure]:
    sizes = list(rounds.rounds[0])
    sizes.sort(key=lambda size: int(size.replace(",", "")))
    return [_figure(rounds, what, title, size) for what, title in titles.items() for size in sizes[1:]]


def _figure(rounds: Rounds, what: str, title: str, size: str) -> Figure:
    smallest = min(rounds.rounds[0], key=lambda other: int(other.replace(",", "")))
    own, other = rounds.median(size, what), rounds.median(smallest, what)
    unit = "ms" if what == "window" else "µs an event"
    factor = 100 if what == "window" else 1e6
    return Figure(
        GROUP,
        f"{title}: {size} events",
        f"{smallest} events",
        Spread.of([sample[size][what] / max(sample[smallest][what], 1e-12) for sample in rounds.rounds]),
        len(rounds),
        bound=None if what == "kineto" else at_most(1.3),
        behind=f"{own * factor:.2f} / {other * factor:.2f} {unit}",
    )
