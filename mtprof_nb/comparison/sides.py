"""The two sides of a comparison: the runs of each, and what can be compared between them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from mtprof_nb.analysis.memory.missing_memory import has_memory
from mtprof_nb.analysis.steps.step_times import step_times
from mtprof_nb.analysis.summary import coverage_notes, has_steps, summary
from mtprof_nb.comparison.verdicts import are_mixed
from mtprof_nb.model.trace import Recorded, Trace


@dataclass(frozen=True, eq=False)
class Side:
    """One program: its label, and its recordings, each of one run."""

    label: str
    runs: tuple[Trace, ...]

    @cached_property
    def steps(self) -> list[int]:
        """For each run, the number of its steps; 0 if none were marked."""
        return [len(step_times(run)) for run in self.runs]

    def all_have(self, has: Callable[[Trace], bool]) -> bool:
        """Whether each run has something."""
        return all(map(has, self.runs))


@dataclass(frozen=True, eq=False)
class Sides:
    """Both sides."""

    a: Side
    b: Side
    #: The least share of time that matters.
    matters: float = 0.05
    #: Whether a step is a call of a function: values are those of one call.
    steps_are_calls: bool = False

    @property
    def both(self) -> tuple[Side, Side]:
        """The sides in their order."""
        return self.a, self.b

    @property
    def all_runs(self) -> tuple[Trace, ...]:
        """The runs of both."""
        return self.a.runs + self.b.runs

    @property
    def is_one_run_each(self) -> bool:
        return len(self.a.runs) == len(self.b.runs) == 1

    @cached_property
    def are_mixed(self) -> bool:
        """Whether the runs of both sides were recorded in turns, or at random."""
        return are_mixed(*([run.began_ns for run in side.runs] for side in self.both))

    @cached_property
    def in_steps(self) -> bool:
        """Whether all runs have several steps, so that a time can be looked at step by step."""
        return self.have(has_steps)

    @cached_property
    def per_step(self) -> bool:
        """Whether counts, bytes and times are divided by the steps of a run: all have steps, but not equally many."""
        steps = self.a.steps + self.b.steps
        return all(steps) and (self.steps_are_calls or len(set(steps)) > 1)

    def divisor(self, run: Trace) -> int:
        """Steps by which the values of a run are divided, or 1."""
        return len(step_times(run)) if self.per_step else 1

    @cached_property
    def hooks_agree(self) -> bool:
        """Whether all runs were recorded by the same hooks, so that they have the same ops."""
        return _agree(frozenset(run.hooks) for run in self.all_runs)

    @cached_property
    def flags_agree(self) -> bool:
        """Whether all runs were recorded with the same flags, and so slowed down as much."""
        return _agree(run.recorded for run in self.all_runs)

    @cached_property
    def is_complete(self) -> bool:
        """Whether an op that a run does not have was not called: no run lacks events, and the hooks agree."""
        return self.hooks_agree and all(map(_is_whole, self.all_runs))

    def have(self, has: Callable[[Trace], bool]) -> bool:
        """Whether every run of both sides has something."""
        return all(side.all_have(has) for side in self.both)

    @cached_property
    def why_incomparable(self) -> str:
        """Why times of the two sides cannot be compared, "" if they can: recording slowed one side down more."""
        if not self.hooks_agree:
            return "the two sides were recorded by different hooks"
        if not self.flags_agree:
            return "the two sides were recorded with different flags"
        if not self.is_complete:
            return "a recording lacks events"
        return ""

    def notes(self) -> list[str]:
        """Differences between the recordings themselves, and what is not compared because of them."""
        notes = [self._hooks_note(), self._flags_note(), *self._missing_notes(), self._steps_note()]
        return [note for note in (*notes, *self._place_notes()) if note]

    def _hooks_note(self) -> str:
        if self.hooks_agree:
            return ""
        a, b = (_texts(hook for run in side.runs for hook in run.hooks) for side in self.both)
        return f"Hooks differ (a: {a}; b: {b}): rows of one side alone are left out, and counts and times not judged."

    def _flags_note(self) -> str:
        if self.flags_agree:
            return ""
        a, b = (_texts(flag for run in side.runs for flag in _flags(run.recorded)) for side in self.both)
        return f"Flags differ (a: {a}; b: {b}): only what both have is compared, and times are not judged."

    def _missing_notes(self) -> list[str]:
        sides = list(zip("ab", self.both, strict=True))
        return [
            *(
                f"{name} lacks events: rows of one side alone are left out, and counts and times not judged."
                for name, side in sides
                if not side.all_have(_is_whole)
            ),
            *(note for name, side in sides for run in side.runs for note in coverage_notes(run, name)),
        ]

    def _steps_note(self) -> str:
        a, b = (_texts(map(str, side.steps)) for side in self.both)
        if self.steps_are_calls:
            calls = f"Phases, lines and ops are those of one call, from one recording of each ({a} calls)."
            return calls if self.per_step else ""
        if self.per_step:
            return f"Steps differ (a: {a}; b: {b}): counts, bytes and times are those of one step."
        if any(self.a.steps) != any(self.b.steps):
            return "Steps were marked on one side only: whole recordings are compared."
        return ""

    def _place_notes(self) -> list[str]:
        places = [(what, *(_of_all(side, read) for side in self.both)) for what, read in _PLACES.items()]
        return [f"{what} differ (a: {_texts(a)}; b: {_texts(b)})." for what, a, b in places if a != b]


def _hosts(run: Trace) -> set[str]:
    """Names of the machines."""
    return {process.host for process in run.processes if process.host}


def _device_names(run: Trace) -> set[str]:
    """Names of the devices, such as "Tesla V100-SXM2-16GB"; their types if no names are recorded."""
    devices = _metadata(run, "deviceProperties")
    described = [one for one in devices if isinstance(one, dict)] if isinstance(devices, list) else []
    names = {name for device in described if isinstance(name := device.get("name"), str)}
    return names or {device for device in run.devices if device != "CPU"}


def _world_sizes(run: Trace) -> set[str]:
    """Numbers of processes of the distributed job."""
    job = _metadata(run, "distributedInfo")
    size = job.get("world_size") if isinstance(job, dict) else None
    return {str(size)} if isinstance(size, int) else set()


def _metadata(run: Trace, key: str) -> Any:
    """Kineto's metadata under a key; None if there is none that can be read."""
    try:
        return json.loads(run.metadata.get(key, "null"))
    except ValueError:
        return None


_PLACES: dict[str, Callable[[Trace], set[str]]] = {
    "Machines": _hosts,
    "Devices": _device_names,
    "Numbers of processes in the job": _world_sizes,
    "Numbers of recorded processes": lambda run: {str(len(run.processes))},
}


def _of_all(side: Side, read: Callable[[Trace], set[str]]) -> set[str]:
    return {text for run in side.runs for text in read(run)}


def _is_whole(run: Trace) -> bool:
    return run.has_all_ops and not run.unrecorded


def has_shapes(run: Trace) -> bool:
    return run.shape is not None


def has_lines(run: Trace) -> bool:
    return run.stack is not None or run.line is not None or run.line_stack is not None


def has_bytes(run: Trace) -> bool:
    return run.recorded.profile_memory and has_memory(run)


def has_device_work(run: Trace) -> bool:
    return summary(run).device_ns is not None


def _flags(recorded: Recorded) -> list[str]:
    return [flag.name for flag in fields(Recorded) if getattr(recorded, flag.name)]


def _agree(values: Iterable[object]) -> bool:
    return len(set(values)) == 1


def _texts(values: Iterable[str]) -> str:
    return ", ".join(sorted(filter(None, set(values)))) or "none"
