"""Figures 1: how much slower a program runs while it is recorded."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.figure import Bound, Figure, at_most
from benchmarks.profilers import PARTS, ours, run_plain, run_recorded, torch_profiler
from benchmarks.programs import FLAGS, MLP, PROGRAMS, Program
from benchmarks.sampling import Rounds, Sample, Scale, Way, in_turns

GROUP = "1 recording"
_BOUNDS = {
    "no flags": at_most(1.05),
    "shapes": at_most(1.05),
    "memory": at_most(1.05),
    "stack": at_most(1.3),
}


def figures(scale: Scale) -> list[Figure]:
    """The standard program with every set of flags and both hooks, the others with the two that matter most."""
    found = []
    for flags in FLAGS:
        found += _flag_figures(MLP, flags, scale, with_dispatch=True)
    for program in PROGRAMS[1:]:
        for flags in ("no flags", "stack"):
            found += _flag_figures(program, flags, scale, with_dispatch=False)
    return found


def _flag_figures(program: Program, flags: str, scale: Scale, *, with_dispatch: bool) -> list[Figure]:
    run = program.prepare(max(program.steps(scale.steps) // PARTS, 1))
    hooks = ("kineto", "dispatch") if with_dispatch else ("kineto",)
    ways: dict[str, Way] = {
        "unprofiled": partial(run_plain, run),
        "torch.profiler": partial(run_recorded, torch_profiler(**FLAGS[flags]), run),
        **{hook: partial(run_recorded, ours(hook, **FLAGS[flags]), run) for hook in hooks},
    }
    if with_dispatch and flags == "no flags":
        ways["empty dispatch mode"] = partial(_run_in_empty_mode, run)
    rounds = in_turns(ways, scale, scale.share(0.035 if with_dispatch else 0.012))
    title = f"{program.name}, {flags}"
    found = [_slowdown(rounds, title, "kineto", "torch.profiler", _BOUNDS.get(flags))]
    found.append(_slowdown(rounds, title, "kineto", "unprofiled"))
    found.append(_slowdown(rounds, title, "torch.profiler", "unprofiled"))
    if with_dispatch:
        found.append(_slowdown(rounds, title, "dispatch", "unprofiled"))
    if "empty dispatch mode" in ways:
        found.append(_slowdown(rounds, title, "dispatch", "empty dispatch mode"))
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


def _run_in_empty_mode(run: Callable[[], None]) -> Sample:
    """The least that any recording by a dispatch mode costs."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Empty(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    with Empty():
        return run_plain(run)
