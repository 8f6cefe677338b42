"""Figures 12: samples of Python stacks beside pyinstrument, slowdown and error of both."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import mtprof_nb
from benchmarks.figure import Bound, Figure, LeftOutError, Spread, at_most
from benchmarks.profilers import Maker, ours, run_plain, run_recorded
from benchmarks.programs import FLAGS, MLP, PROGRAMS, Program
from benchmarks.sampling import Sample, Scale, Way, in_turns

GROUP = "12 Python's time"
#: Seconds between two samples of pyinstrument: its usual ones, and as many as ours.
_INTERVALS = {"pyinstrument": 0.001, "pyinstrument, 2 ms": 0.002}
_PYTHON_HEAVY = PROGRAMS[-1]


def figures(scale: Scale) -> list[Figure]:
    """Slowdown of two programs, then the error on a program that measures its own functions."""
    import torch  # noqa: F401 - hook auto and the native recorder need it

    if find_spec("pyinstrument") is None:
        msg = "pyinstrument is not installed: pip install pyinstrument"
        raise LeftOutError(msg)
    programs = ((_PYTHON_HEAVY, at_most(1.03)), (MLP, None))
    slower = [figure for program, bound in programs for figure in _slowdowns(program, bound, scale)]
    return [*slower, *_errors(scale)]


def _slowdowns(program: Program, bound: Bound | None, scale: Scale) -> list[Figure]:
    run = program.prepare(program.steps(scale.steps))
    everything = FLAGS["all"]
    ways: dict[str, Way] = {
        "unprofiled": partial(run_plain, run),
        "no samples": partial(run_recorded, ours("auto", **everything), run),
        "samples": partial(run_recorded, ours("auto", **everything, with_python=True), run),
        "no flags": partial(run_recorded, ours("auto"), run),
        "no flags, samples": partial(run_recorded, ours("auto", with_python=True), run),
        **{name: partial(run_recorded, _pyinstrument(seconds), run) for name, seconds in _INTERVALS.items()},
    }
    rounds = in_turns(ways, scale, scale.share(0.08))
    title = f"{program.name}, time of the program"
    return [
        rounds.figure(GROUP, f"{title}: all flags, samples", "samples", "no samples", "run", bound=bound),
        rounds.figure(GROUP, f"{title}: no flags, samples", "no flags, samples", "no flags", "run"),
        *(
            rounds.figure(GROUP, f"{title}: {way}", way, "unprofiled", "run")
            for way in ("no flags, samples", *_INTERVALS)
        ),
    ]


def _pyinstrument(seconds: float) -> Maker:
    from pyinstrument import Profiler

    return lambda: Profiler(interval=seconds)


class KnownSplit:
    """A program of three functions, of which `spent` has the seconds that each took."""

    def __init__(self, rounds: int) -> None:
        self._rounds = rounds
        self.spent = {"parse": 0.0, "tokenize": 0.0, "fetch": 0.0}

    def __call__(self) -> None:
        for _ in range(self._rounds):
            self.parse()
            self.tokenize()
            self.fetch()

    def parse(self) -> None:
        began = time.perf_counter()
        _compute(0.003)
        self.spent["parse"] += time.perf_counter() - began

    def tokenize(self) -> None:
        began = time.perf_counter()
        _compute(0.007)
        self.spent["tokenize"] += time.perf_counter() - began

    def fetch(self) -> None:
        began = time.perf_counter()
        time.sleep(0.005)
        self.spent["fetch"] += time.perf_counter() - began


def _compute(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(50))


def _errors(scale: Scale) -> list[Figure]:
    length = max(scale.steps // 10, 1)
    ways: dict[str, Way] = {
        "samples": partial(_error, ours("auto", with_python=True), _of_functions, length),
        **{name: partial(_error, _pyinstrument(each), _of_pyinstrument, length) for name, each in _INTERVALS.items()},
    }
    rounds = in_turns(ways, scale, scale.share(0.04))
    return [
        Figure(
            GROUP,
            f"functions of 3, 7 and 5 ms, {length} times: largest error of a function",
            way,
            Spread.of(rounds.values(way, "error")),
            len(rounds),
            unit="% of the whole",
        )
        for way in ways
    ]


def _error(make: Maker, read: Callable[[Any], dict[str, float]], length: int) -> Sample:
    """The largest difference between a function's time and what the profiler says, in percent of the whole."""
    program, profiler = KnownSplit(length), make()
    profiler.start()
    try:
        program()
    finally:
        profiler.stop()
    found, whole = read(profiler), sum(program.spent.values())
    return {"error": max(abs(found.get(name, 0.0) - spent) for name, spent in program.spent.items()) / whole * 100}


def _of_functions(prof: mtprof_nb.profile) -> dict[str, float]:
    return {row.function: row.total_ns / 1e9 for row in prof.functions()}


def _of_pyinstrument(profiler: Any) -> dict[str, float]:
    """The seconds of each function, with what it called."""
    found: dict[str, float] = {}
    for stack, seconds in profiler.last_session.frame_records:
        for function in {frame.split("\x00", 1)[0] for frame in stack}:
            found[function] = found.get(function, 0.0) + seconds
    return found
