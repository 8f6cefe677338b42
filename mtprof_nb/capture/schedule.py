"""Which step is recorded: a pure function from step number to action."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any


class ProfilerAction(Enum):
    """What a session does in one step. `DEVICE_STOPPED` is set by a session, never by a schedule."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4


Schedule = Callable[[int], ProfilerAction]


def schedule(
    wait: int = 0, warmup: int = 0, active: int = 0, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Schedule:
    """Skip `skip_first` steps, then cycle: `wait` idle, `warmup`, `active` recorded; `repeat` times, 0 for ever.

    `skip_first_wait` other than 0 leaves out the first `wait`. A negative or non-integer number, or no active
    step, is a `ValueError`.
    """
    numbers = {"wait": wait, "warmup": warmup, "active": active, "repeat": repeat, "skip_first": skip_first}
    for name, number in (numbers | {"skip_first_wait": skip_first_wait}).items():
        if not isinstance(number, int) or number < 0:
            msg = f"schedule: {name} must be an integer that is not negative, got {number!r}"
            raise ValueError(msg)
    if active == 0:
        msg = "schedule: active must be at least 1, or no step would be recorded"
        raise ValueError(msg)
    cycle = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < 0:
            msg = f"a step number is not negative, got {step}"
            raise ValueError(msg)
        if step < skip_first:
            return ProfilerAction.NONE
        position = step - skip_first + (wait if skip_first_wait else 0)
        if repeat and position >= repeat * cycle:
            return ProfilerAction.NONE
        position %= cycle
        if position < wait:
            return ProfilerAction.NONE
        if position < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if position == cycle - 1 else ProfilerAction.RECORD

    return action


def record_always(step: int) -> ProfilerAction:  # noqa: ARG001 - a schedule takes the step
    """What a session without a schedule does."""
    return ProfilerAction.RECORD


def as_action(value: Any) -> ProfilerAction:
    """Our action for what a schedule returned: ours, torch's, or MindTorch's."""
    try:
        action = ProfilerAction(getattr(value, "value", value))
    except ValueError:
        msg = f"a schedule returns a ProfilerAction for each step, got {value!r}"
        raise ValueError(msg) from None
    if action is ProfilerAction.DEVICE_STOPPED:
        msg = "ProfilerAction.DEVICE_STOPPED is set by the profiler and must not be returned by a schedule"
        raise ValueError(msg)
    return action
