"""How far the profiler's estimate of its own time is from the time that recording adds, with every flag."""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.figure import Figure, Spread, at_most
from benchmarks.native.running import GROUP
from benchmarks.profilers import PARTS, ours, run_plain, run_recorded
from benchmarks.programs import FLAGS, MLP, SMALL_OPS, Program
from benchmarks.sampling import Sample, Scale, Way, in_turns

#: Another index each time, as in every `DataLoader` over tensors.
_SELECT = """
for step in range(steps):
    row = state.select(0, step)
"""
_LOADER = """
for batch in loader:
    pass
"""


def _state() -> dict[str, Any]:
    import torch

    return {"state": torch.ones(100_000, 2)}


def _loader() -> dict[str, Any]:
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    data = TensorDataset(torch.randn(2_000, 8), torch.zeros(2_000, dtype=torch.long))
    return {"loader": DataLoader(data, batch_size=64)}


_PROGRAMS = (
    SMALL_OPS,
    Program("select", _SELECT, _state),
    Program("loader over tensors", _LOADER, _loader),
    MLP,
)


def figures(scale: Scale) -> list[Figure]:
    """Each program."""
    return [_figure(program, scale) for program in _PROGRAMS]


def _figure(program: Program, scale: Scale) -> Figure:
    run = program.prepare(scale.steps * (1 if program is MLP else 40))
    ways: dict[str, Way] = {
        "unprofiled": partial(run_plain, run),
        "native": partial(run_recorded, ours("native", **FLAGS["all"]), run, _told),
    }
    rounds = in_turns(ways, scale, scale.share(0.01))
    # Whatever disturbs a run adds to it.
    added = rounds.least_added("run", "native", "unprofiled")
    told = [value / max(added, 1e-9) for value in rounds.values("native", "told")]
    behind = f"says {rounds.median('native', 'told') * 1e3:.2f} ms of {added * 1e3:.2f} ms"
    error = Spread.of([abs(ratio - 1) * 100 for ratio in told])
    title = f"{program.name}, all: error of the profiler's own time"
    # The steps of training have ops of many kinds, which the estimate does not tell apart.
    bound = None if program is MLP else at_most(20)
    return Figure(GROUP, title, "", error, len(rounds), unit="%", bound=bound, behind=behind)


def _told(profiler: Any) -> Sample:
    """The seconds that recording added to one part, as the profiler says."""
    return {"told": (profiler.trace.overhead_ns - profiler.trace.own_ns) / PARTS / 1e9}
