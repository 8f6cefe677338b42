"""Figures 1: how much slower a program runs while it is recorded."""

from __future__ import annotations

from functools import partial

from benchmarks.figure import Bound, Figure, at_most
from benchmarks.profilers import PARTS, ours, run_plain, run_recorded, torch_profiler
from benchmarks.programs import FLAGS, MLP, PROGRAMS, Program
from benchmarks.sampling import Rounds, Scale, Way, in_turns

GROUP = "1 recording"
_BOUNDS = {
    "no flags": at_most(1.05),
    "shapes": at_most(1.05),
    "memory": at_most(1.05),
    "stack": at_most(1.3),
}


def figures(scale: Scale) -> list[Figure]:
    """The standard program with every set of flags, the others with the two that matter most."""
    found = []
    for flags in FLAGS:
        found += _flag_figures(MLP, flags, scale)
    for program in PROGRAMS[1:]:
        for flags in ("no flags", "stack"):
            found += _flag_figures(program, flags, scale)
    return found


def _flag_figures(program: Program, flags: str, scale: Scale) -> list[Figure]:
    run = program.prepare(max(program.steps(scale.steps) // PARTS, 1))
    ways: dict[str, Way] = {
        "unprofiled": partial(run_plain, run),
        "torch.profiler": partial(run_recorded, torch_profiler(**FLAGS[flags]), run),
        "kineto": partial(run_recorded, ours("kineto", **FLAGS[flags]), run),
    }
    rounds = in_turns(ways, scale, scale.share(0.012))
    title = f"{program.name}, {flags}"
    found = [_slowdown(rounds, title, "kineto", "torch.profiler", _BOUNDS.get(flags))]
    found.append(_slowdown(rounds, title, "kineto", "unprofiled"))
    found.append(_slowdown(rounds, title, "torch.profiler", "unprofiled"))
    return found


def _slowdown(rounds: Rounds, title: str, way: str, peer: str, bound: Bound | None = None) -> Figure:
    events = rounds.median("kineto", "events")

    def added(name: str) -> str:
        nanoseconds = (rounds.median(name, "run") - rounds.median("unprofiled", "run")) / max(events, 1) * 1e9
        return f"{nanoseconds / 1000:.2f} µs"

    behind = f"adds {added(way)} an op"
    if peer != "unprofiled":
        behind += f" / {added(peer)}"
    return rounds.figure(GROUP, f"{title}: {way}", way, peer, "run", bound=bound, behind=behind)
