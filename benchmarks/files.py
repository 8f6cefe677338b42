"""Figures 9: a recording as a file of its own, its size and the time to save and to load it; and traces of others."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import mtprof_nb
from benchmarks import foreign
from benchmarks.figure import Bound, Figure, Spread, at_most
from benchmarks.programs import FLAGS, PROGRAMS
from benchmarks.repeated import recording, repeated
from benchmarks.sampling import Lap, Rounds, Sample, Scale, Way, in_turns
from mtprof_nb.model.trace import Trace
from mtprof_nb.recording import Recording

GROUP = "9 files"
#: The largest recording that is saved: a real one, repeated.
_MOST_EVENTS = 1_000_000


def figures(scale: Scale) -> list[Figure]:
    """Two programs with every flag, and the first of them repeated."""
    programs = [program for program in PROGRAMS if program.name in ("mlp", "encoder")]
    traces = {one.name: recording(one.steps(scale.steps), one, **FLAGS["all"]) for one in programs}
    traces["mlp, repeated"] = repeated(traces["mlp"], min(scale.sizes[-1], _MOST_EVENTS))
    with tempfile.TemporaryDirectory() as folder:
        own = [one for name, trace in traces.items() for one in _own_file(name, trace, scale, Path(folder))]
    return own + foreign.figures(GROUP, scale)


def _own_file(name: str, trace: Trace, scale: Scale, folder: Path) -> list[Figure]:
    ways: dict[str, Way] = {
        ".mtp": partial(_saved_and_loaded, trace, folder / "run.mtp"),
        ".json.gz": partial(_exported, trace, folder / "trace.json.gz"),
    }
    # A Chrome trace of a million events takes long, and is only there for its size.
    if len(trace) > scale.sizes[0] * 30:
        del ways[".json.gz"]
    rounds = in_turns(ways, scale, scale.share(0.02))
    title = f"{name}, all, {len(trace):,} events"
    found = [
        _an_event(rounds, f"{title}: size", "bytes", "B an event", at_most(12)),
        _an_event(rounds, f"{title}: save", "save", "µs an event", at_most(0.5)),
        _an_event(rounds, f"{title}: load", "load", "µs an event", at_most(0.3)),
    ]
    if ".json.gz" in ways:
        behind = " / ".join(f"{rounds.median(way, 'bytes'):.1f} B an event" for way in ways)
        found.append(rounds.figure(GROUP, f"{title}: size", ".mtp", ".json.gz", "bytes", behind=behind))
    return found


def _an_event(rounds: Rounds, title: str, what: str, unit: str, bound: Bound) -> Figure:
    return Figure(GROUP, title, "", Spread.of(rounds.values(".mtp", what)), len(rounds), unit=unit, bound=bound)


def _saved_and_loaded(trace: Trace, path: Path) -> Sample:
    lap = Lap()
    Recording(trace).save(path)
    lap("save")
    again = Lap()
    mtprof_nb.load(path)
    again("load")
    microseconds = {what: seconds * 1e6 / len(trace) for what, seconds in {**lap.times, **again.times}.items()}
    return {**microseconds, "bytes": path.stat().st_size / len(trace)}


def _exported(trace: Trace, path: Path) -> Sample:
    Recording(trace).export_chrome_trace(path)
    return {"bytes": path.stat().st_size / len(trace)}
