"""Figures 4: the chrome trace, plain and compressed, beside torch's exporters; and the size of the file."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.figure import Bound, Figure, at_most
from benchmarks.profilers import Maker, ours, recorded, torch_profiler
from benchmarks.programs import FLAGS, MLP
from benchmarks.sampling import Lap, Rounds, Sample, Scale, Way, in_turns, wall_clock

GROUP = "4 export"


def figures(scale: Scale) -> list[Figure]:
    """The standard program without flags and with all of them."""
    with tempfile.TemporaryDirectory() as folder:
        found = _flag_figures("no flags", scale.steps, scale, Path(folder))
        return found + _flag_figures("all", max(scale.steps // 4, 1), scale, Path(folder))


def _flag_figures(flags: str, steps: int, scale: Scale, folder: Path) -> list[Figure]:
    run = MLP.prepare(steps)
    torchs, own = torch_profiler(**FLAGS[flags]), ours("kineto", **FLAGS[flags])
    ways: dict[str, Way] = {
        "torch, C++": partial(_export, torchs, run, folder / "trace.json"),
        "torch, Python": partial(_export, torchs, run, folder / "trace.json", use_python_export=True),
        "ours": partial(_export, own, run, folder / "trace.json"),
        "torch, C++, gz": partial(_export, torchs, run, folder / "trace.json.gz"),
        "ours, gz": partial(_export, own, run, folder / "trace.json.gz"),
    }
    rounds = in_turns(ways, scale, scale.share(0.05))
    title = f"mlp, {flags}, {rounds.median('ours', 'events'):,.0f} events"
    return [
        _figure(rounds, f"{title}: .json", "ours", "torch, C++", at_most(1)),
        _figure(rounds, f"{title}: .json", "ours", "torch, Python"),
        _figure(rounds, f"{title}: .json.gz", "ours, gz", "torch, C++, gz", at_most(1)),
        _size(rounds, f"{title}: size of .json", "ours", "torch, C++"),
        _size(rounds, f"{title}: size of .json.gz", "ours, gz", "torch, C++, gz"),
    ]


def _figure(rounds: Rounds, title: str, way: str, peer: str, bound: Bound | None = None) -> Figure:
    return rounds.figure(GROUP, title, way, peer, "written", bound=bound)


def _size(rounds: Rounds, title: str, way: str, peer: str) -> Figure:
    behind = " / ".join(f"{rounds.median(name, 'bytes') / 1e6:.2f} MB" for name in (way, peer))
    return rounds.figure(GROUP, title, way, peer, "bytes", behind=behind)


def _export(make: Maker, run: Callable[[], None], path: Path, **options: Any) -> Sample:
    """Write once: a result of Kineto's can be saved only once, so each sample records anew."""
    profiler = recorded(make, run)
    profiler.stop()
    trace = getattr(profiler, "trace", ())
    lap = Lap(wall_clock)
    profiler.export_chrome_trace(str(path), **options)
    lap("written")
    return {**lap.times, "bytes": path.stat().st_size, "events": len(trace)}
