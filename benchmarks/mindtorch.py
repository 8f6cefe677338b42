"""Figures 5: what recording adds to an op of MindTorch v2, by its own profiler and by our hook."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

from benchmarks.figure import Figure, at_most
from benchmarks.profilers import ours, run_plain, run_recorded
from benchmarks.sampling import Sample, Scale, in_turns

GROUP = "5 mindtorch_v2"
#: A folder with packages that are not installed.
PEERS = "MTPROF_PEERS"
_BOUNDS = {"no flags": at_most(0.5), "stack": at_most(0.2)}
_FLAGS: dict[str, dict[str, bool]] = {
    "no flags": {},
    "shapes": {"record_shapes": True},
    "memory": {"profile_memory": True},
    "stack": {"with_stack": True},
}


def figures(scale: Scale) -> list[Figure]:
    """Added time an op; no figure where the runtime or the hook cannot be imported."""
    folder = os.environ.get(PEERS)
    if folder and folder not in sys.path:
        sys.path.append(folder)
    if find_spec("mindtorch_v2") is None or find_spec("mtprof_nb.capture.mindtorch_v2") is None:
        return []
    return [_flag_figure(program, flags, scale) for program in PROGRAMS for flags in _FLAGS]


def _flag_figure(program: str, flags: str, scale: Scale) -> Figure:
    from mindtorch_v2 import profiler

    chosen = _FLAGS[flags]
    run = PROGRAMS[program](max(scale.steps // 4, 1))
    ways: dict[str, Callable[[], Sample]] = {
        "unprofiled": partial(run_plain, run),
        "its own profiler": partial(run_recorded, partial(profiler.profile, **chosen), run),
        "ours": partial(run_recorded, ours("mindtorch_v2", **chosen), run),
    }
    rounds = in_turns(ways, scale, scale.share(0.006))
    events = max(rounds.median("ours", "events"), 1)
    base = rounds.median("unprofiled", "run")
    behind = [f"{(rounds.median(way, 'run') - base) / events * 1e6:.2f} µs" for way in ("ours", "its own profiler")]
    return Figure(
        GROUP,
        f"{program}, {flags}: added time an op",
        "its own profiler",
        rounds.added("run", "ours", "its own profiler", "unprofiled"),
        len(rounds),
        bound=_BOUNDS.get(flags),
        behind=" / ".join(behind),
    )


def additions(steps: int) -> Callable[[], None]:
    """The smallest op there is, a hundred times a step: little else than what is added."""
    import mindtorch_v2 as torch

    one = torch.ones(4)

    def run() -> None:
        for _ in range(100 * steps):
            one + one

    run()
    return run


def mlp(steps: int) -> Callable[[], None]:
    """The standard program, in MindTorch v2, once warm."""
    import mindtorch_v2 as torch
    from mindtorch_v2 import nn, optim

    layers: list[Any] = [layer for _ in range(6) for layer in (nn.Linear(32, 32), nn.ReLU())]
    model = nn.Sequential(*layers)
    optimizer = optim.SGD(model.parameters(), lr=0.01)
    inputs, targets = torch.randn(16, 32), torch.randn(16, 32)

    def run() -> None:
        for _ in range(steps):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(inputs), targets)
            loss.backward()
            optimizer.step()

    run()
    return run


#: Programs, once warm, by name.
PROGRAMS: dict[str, Callable[[int], Callable[[], None]]] = {"additions": additions, "mlp": mlp}
