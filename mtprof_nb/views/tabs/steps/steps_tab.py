"""The steps tab: a bar for each step, the median, and in what slow steps differ."""

from __future__ import annotations

import numpy as np

from mtprof_nb.analysis import units
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.steps.step_figures import SlowStep, StepDifference, StepFigures, step_figures
from mtprof_nb.model.source_files import source_location
from mtprof_nb.model.trace import PHASES, Int64, Trace
from mtprof_nb.tables.step_table import NO_STEPS, steps_sentence
from mtprof_nb.views.escaped_text import shown
from mtprof_nb.views.scene import Answer, Tab
from mtprof_nb.views.strip import OUTSIDE

#: The most bars. Of more steps, each bar is the longest of several.
MOST_BARS = 500


class StepsTab(Tab):
    """Asks nothing: all of it is in the first content."""

    def first(self) -> Answer:
        """Columns of the bars, and the slow steps."""
        trace = self._scene.trace
        steps = step_figures(trace)
        if steps is None:
            return {"empty": units.sentence(NO_STEPS)}
        bars = _bars(steps)
        parts = {**dict(zip(PHASES, steps.phases_ns, strict=True)), OUTSIDE: steps.outside_ns}
        return {
            "sentence": steps_sentence(trace, steps),
            "thinned": len(bars) < len(steps),
            "median_ns": steps.median_ns,
            "number": steps.number[bars].tolist(),
            "duration_ns": steps.duration_ns[bars].tolist(),
            "parts": {part: column[bars].tolist() for part, column in parts.items() if column.any()},
            "slow": [_slow(trace, steps, one) for one in steps.slow],
        }


def _bars(steps: StepFigures) -> Int64:
    """Positions of the steps that have a bar: all, or the longest of each of equal runs."""
    if len(steps) <= MOST_BARS:
        return np.arange(len(steps))
    runs = np.array_split(np.arange(len(steps)), MOST_BARS)
    return np.array([run[steps.duration_ns[run].argmax()] for run in runs])


def _slow(trace: Trace, steps: StepFigures, slow: SlowStep) -> Answer:
    return {
        "number": int(steps.number[slow.position]),
        "duration_ns": int(steps.duration_ns[slow.position]),
        "differences": [_difference(trace, one) for one in slow.differences],
    }


def _difference(trace: Trace, one: StepDifference) -> Answer:
    return {
        "id": attribution(trace).lines.index(one.line) if one.line else -1,
        "location": shown(source_location(trace, *one.line) if one.line else one.title),
        "ns": one.ns,
        "usual_ns": one.usual_ns,
    }
