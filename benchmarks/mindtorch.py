"""Figures 5: what recording adds to an op of MindTorch v2, by its own profiler and by our hook."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any

from benchmarks.figure import Figure, LeftOutError, at_most
from benchmarks.profilers import ours, run_plain, run_recorded
from benchmarks.sampling import Scale, Way, in_turns

GROUP = "5 mindtorch_v2"
#: A folder with packages that are not installed.
PEERS = "MTPROF_PEERS"
_BOUNDS = {"no flags": at_most(0.5), "stack": at_most(0.2)}
_SHARES = {"no flags": 0.03, "stack": 0.02}
_FLAGS: dict[str, dict[str, bool]] = {
    "no flags": {},
    "shapes": {"record_shapes": True},
    "memory": {"profile_memory": True},
    "stack": {"with_stack": True},
}


def figures(scale: Scale) -> list[Figure]:
    """Added time an op; left out where the runtime cannot be imported."""
    folder = os.environ.get(PEERS)
    if folder and folder not in sys.path:
        sys.path.append(folder)
    if find_spec("mindtorch_v2") is None:
        msg = f"mindtorch_v2 is not installed, nor in the folder that {PEERS} names"
        raise LeftOutError(msg)
    # What is there already is not searched for garbage again before each sample.
    gc.freeze()
    return [_flag_figure(program, flags, scale) for program in PROGRAMS for flags in _FLAGS]


def _flag_figure(program: str, flags: str, scale: Scale) -> Figure:
    from mindtorch_v2 import profiler

    chosen = _FLAGS[flags]
    run = PROGRAMS[program]()
    ways: dict[str, Way] = {
        "unprofiled": partial(run_plain, run),
        "its own profiler": partial(run_recorded, partial(profiler.profile, **chosen), run),
        "ours": partial(run_recorded, ours("mindtorch_v2", **chosen), run),
    }
    # An op takes ten times what is added to it, and what it takes varies.
    rounds = in_turns(ways, replace(scale, most_rounds=scale.most_rounds * 10), scale.share(_SHARES.get(flags, 0.005)))
    events = max(rounds.median("ours", "events"), 1)
    added = [rounds.least_added("run", way, "unprofiled") / events for way in ("ours", "its own profiler")]
    return Figure(
        GROUP,
        f"{program}, {flags}: added time an op",
        "its own profiler",
        rounds.added("run", "ours", "its own profiler", "unprofiled"),
        len(rounds),
        bound=_BOUNDS.get(flags),
        behind=" / ".join(f"{seconds * 1e6:.2f} µs" for seconds in added),
    )


def additions() -> Callable[[], None]:
    """The smallest op there is, two hundred times: little else than what is added."""
    import mindtorch_v2 as torch

    one = torch.ones(4)

    def run() -> None:
        for _ in range(200):
            one + one

    run()
    return run


def mlp() -> Callable[[], None]:
    """Two steps of the standard program, in MindTorch v2, once warm."""
    import mindtorch_v2 as torch
    from mindtorch_v2 import nn, optim

    layers: list[Any] = [layer for _ in range(6) for layer in (nn.Linear(32, 32), nn.ReLU())]
    model = nn.Sequential(*layers)
    optimizer = optim.SGD(model.parameters(), lr=0.01)
    inputs, targets = torch.randn(16, 32), torch.randn(16, 32)

    def run() -> None:
        for _ in range(2):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(inputs), targets)
            loss.backward()
            optimizer.step()

    run()
    return run


#: Programs, once warm, by name.
PROGRAMS: dict[str, Callable[[], Callable[[], None]]] = {"additions": additions, "mlp": mlp}
