"""How much slower a program runs while hook `native` records it."""

from __future__ import annotations

from functools import partial

from benchmarks.figure import Bound, Figure, at_most
from benchmarks.profilers import PARTS, ours, run_plain, run_recorded, torch_profiler
from benchmarks.programs import MLP, PROGRAMS, Program
from benchmarks.sampling import Rounds, Scale, Way, in_turns

GROUP = "10 native"
_TOGETHER = {"record_shapes": True, "with_stack": True, "profile_memory": True}
_PLAIN, _WITH_FLAGS = "torch.profiler, no flags", "torch.profiler, same flags"


def figures(scale: Scale) -> list[Figure]:
    """Every program without flags; the standard one also with shapes, stacks and memory together."""
    return [figure for program in PROGRAMS for figure in _program_figures(program, scale)]


def _program_figures(program: Program, scale: Scale) -> list[Figure]:
    run = program.prepare(max(program.steps(scale.steps) // PARTS, 1))
    ways: dict[str, Way] = {
        "unprofiled": partial(run_plain, run),
        _PLAIN: partial(run_recorded, torch_profiler(), run),
        "native": partial(run_recorded, ours("native"), run),
    }
    if program is MLP:
        ways["native, together"] = partial(run_recorded, ours("native", **_TOGETHER), run)
        ways[_WITH_FLAGS] = partial(run_recorded, torch_profiler(**_TOGETHER), run)
    rounds = in_turns(ways, scale, scale.share(0.06 if program is MLP else 0.015))
    title = f"{program.name}, no flags"
    # In a program of long ops, such as convolutions, even a recorder that costs nothing is hardly that much faster.
    bound = at_most(0.9) if program is MLP else None
    found = [_slowdown(rounds, title, "native", _PLAIN, bound), _slowdown(rounds, title, "native", "unprofiled")]
    if program is MLP:
        title = f"{program.name}, shapes, stacks and memory"
        found += [
            _slowdown(rounds, title, "native, together", _PLAIN, at_most(1.1)),
            _slowdown(rounds, title, "native, together", _WITH_FLAGS, at_most(0.8)),
            _slowdown(rounds, title, "native, together", "unprofiled"),
        ]
    return found


def _slowdown(rounds: Rounds, title: str, way: str, peer: str, bound: Bound | None = None) -> Figure:
    events = max(rounds.median("native", "events"), 1)

    def added(name: str) -> str:
        return f"{(rounds.median(name, 'run') - rounds.median('unprofiled', 'run')) / events * 1e6:.2f} µs"

    behind = f"adds {added(way)} an op" + ("" if peer == "unprofiled" else f" / {added(peer)}")
    return rounds.figure(GROUP, f"{title}: time of the program", way, peer, "run", bound=bound, behind=behind)
