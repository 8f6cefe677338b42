"""The tab of two timelines: one step of each side, under one axis that begins with the step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtprof_nb.analysis.families import FAMILIES
from mtprof_nb.analysis.lod import LIMIT
from mtprof_nb.analysis.steps.step_times import StepTime, step_times
from mtprof_nb.comparison.sides import Sides
from mtprof_nb.model.trace import Trace
from mtprof_nb.views.comparison.comparison_tables import labels
from mtprof_nb.views.scene import Answer, Question, Tab
from mtprof_nb.views.tabs.timeline.timeline_blocks import Timeline, arranged

#: The most steps that can be chosen.
_MOST_STEPS = 200
_FIRST_BARS = 400
#: The most bars of each side that are sent whole.
_WHOLE_BARS = 50_000
_NOTHING = "Nothing was recorded on one side, so there are no timelines to compare."


class StepPair(NamedTuple):
    """A step of each side, under a title."""

    title: str
    a: StepTime
    b: StepTime

    @property
    def length_ns(self) -> int:
        """The length of the longer one."""
        return max(self.a.duration_ns, self.b.duration_ns, 1)


def step_pairs(sides: Sides) -> list[StepPair]:
    """The median step of both sides, then steps in their order; without steps, the whole recordings."""
    a, b = sides.a.runs[0], sides.b.runs[0]
    a_steps, b_steps = step_times(a), step_times(b)
    unit = "call" if sides.steps_are_calls else "step"
    pairs = [StepPair(f"{unit} {number}", *both) for number, both in enumerate(zip(a_steps, b_steps, strict=False))]
    if not pairs:
        return [StepPair("whole recording", _whole(a), _whole(b))]
    return [StepPair(f"median {unit}", _median(a_steps), _median(b_steps)), *pairs[:_MOST_STEPS]]


def _whole(trace: Trace) -> StepTime:
    begin, end = arranged(trace).whole_ns
    return StepTime(0, begin, end - begin)


def _median(steps: tuple[StepTime, ...]) -> StepTime:
    """The step whose length is nearest to the median."""
    middle = float(np.median([step.duration_ns for step in steps]))
    return min(steps, key=lambda step: abs(step.duration_ns - middle))


class TwoTimelinesTab(Tab):
    """Answers questions for a window of a step on both sides."""

    @property
    def _charts(self) -> tuple[Timeline, Timeline]:
        sides = self._scene.compared.sides
        return arranged(sides.a.runs[0]), arranged(sides.b.runs[0])

    def first(self) -> Answer:
        compared = self._scene.compared
        if not self._is_drawn:
            return {"empty": _NOTHING}
        pairs = step_pairs(compared.sides)
        codes = {int(code) for chart in self._charts for code in np.unique(chart.family)}
        return {
            "labels": list(labels(compared)),
            "steps": [{"title": pair.title, "length_ns": [pair.a.duration_ns, pair.b.duration_ns]} for pair in pairs],
            "lanes": [chart.lane_rows() for chart in self._charts],
            "windows": self._windows(pairs[0], 0, pairs[0].length_ns, 1_000, _FIRST_BARS),
            "families": [family._asdict() for family in FAMILIES],
            "legend": sorted(codes),
        }

    def answer(self, question: Question) -> Answer | None:
        """Both sides `whole`, if they are short; a `window` of both, in nanoseconds since the step began."""
        if question["ask"] == "whole":
            is_long = any(len(chart.trace) > _WHOLE_BARS for chart in self._charts)
            return self._whole() if question.get("coarse") or not is_long else None
        if question["ask"] != "window":
            return super().answer(question)
        pair = step_pairs(self._scene.compared.sides)[int(question["step"])]
        pixels = min(max(int(question["pixels"]), 100), 4_000)
        return {"windows": self._windows(pair, int(question["begin_ns"]), int(question["end_ns"]), pixels)}

    def carried(self) -> list[Question]:
        return [{"ask": "whole"}] if self._is_drawn else []

    def _whole(self) -> Answer:
        """Both recordings at the finest level of detail that is sent, and where each step begins."""
        pairs = step_pairs(self._scene.compared.sides)
        return {
            side: {
                # With a pixel for each nanosecond, the finest level of detail.
                "window": chart.window(*chart.whole_ns, chart.whole_ns[1] - chart.whole_ns[0], most=_WHOLE_BARS),
                "start_ns": [getattr(pair, side).start_ns - chart.whole_ns[0] for pair in pairs],
                "length_ns": [getattr(pair, side).duration_ns for pair in pairs],
            }
            for side, chart in zip("ab", self._charts, strict=True)
        }

    @property
    def _is_drawn(self) -> bool:
        runs = self._scene.compared.sides.all_runs
        return bool(runs) and all(len(run) for run in runs)

    def _windows(self, pair: StepPair, begin: int, end: int, pixels: int, most: int = LIMIT) -> list[Answer]:
        """The window of each side; nothing is drawn after the end of its own step."""
        windows = []
        for chart, step in zip(self._charts, (pair.a, pair.b), strict=True):
            ends = max(min(end, step.duration_ns), begin + 1)
            width = max(round(pixels * (ends - begin) / max(end - begin, 1)), 1)
            # An event that begins as the step ends is of the next one.
            shown = step.start_ns + begin, step.start_ns + ends - 1
            windows.append(chart.window(*shown, width, most=most, origin_ns=step.start_ns))
        return windows
