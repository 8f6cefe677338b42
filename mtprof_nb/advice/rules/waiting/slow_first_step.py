"""Recordings whose first step took far longer than the others."""

from __future__ import annotations

from statistics import median

from mtprof_nb.advice.causes.collector_time import collected_ns
from mtprof_nb.advice.causes.preparations import preparation_ns
from mtprof_nb.advice.finding import CERTAIN, Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.program_time.recorded_time import recorded_ns
from mtprof_nb.analysis.steps.step_times import StepTime, step_times
from mtprof_nb.model.trace import Trace

_LEAST_STEPS, _TIMES_SLOWER = 4, 3
#: The preparation is named if it takes at least this share of the first step.
_MOSTLY = 0.5
_FIX = """\
train_step()  # once before the recording; or leave it out of the recording:
%%mtprofile --schedule wait=1,warmup=1,active=3"""


@rule
def slow_first_step(trace: Trace) -> Finding | None:
    """Find a step 0 that took over three times as long as the median of the others; needs marked steps.

    Its garbage collections do not count: they may come in any step.
    """
    first, *others = step_times(trace) or (None,)
    if first is None or first.number or len(others) < _LEAST_STEPS - 1:
        return None
    usual = int(median(step.duration_ns for step in others))
    if first.duration_ns - _collected_ns(trace, first) < _TIMES_SLOWER * usual:
        return None
    return Finding(
        "The first step is much slower than the others",
        f"Step 0 takes {units.duration(first.duration_ns)}, the median of the {len(others)} others is "
        f"{units.duration(usual)}: this is {_preparation(trace, first.duration_ns)}, and all other figures contain it.",
        _FIX,
        at_most_ns=first.duration_ns - usual,
        certainty=CERTAIN,
    )


def _collected_ns(trace: Trace, step: StepTime) -> int:
    """The time of the garbage collections that began in a step."""
    collections = trace.collections
    if collections is None:
        return 0
    since_ns = collections.start_ns - step.start_ns
    return collected_ns(collections.take((since_ns >= 0) & (since_ns < step.duration_ns)))


def _preparation(trace: Trace, first_ns: int) -> str:
    """As "mostly imports"; "probably preparation" if samples do not prove that one kind took half of the first step."""
    title, ns = max(preparation_ns(trace).items(), key=lambda pair: pair[1], default=("", 0))
    in_first_ns = ns - (recorded_ns(trace) - first_ns)
    return f"mostly {title}" if in_first_ns >= _MOSTLY * first_ns else "probably preparation"
