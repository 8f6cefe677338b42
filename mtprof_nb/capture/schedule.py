"""Which steps are recorded, and what is called between two steps."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any

from mtprof_nb.errors import warn


class ProfilerAction(Enum):
    """The action of a session in one step. `DEVICE_STOPPED` is set by a session, never by a schedule.

    A member equals the member of the same name of any runtime's `ProfilerAction`.
    """

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Enum) and type(other).__name__ == "ProfilerAction" and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)  # as of every enum's member


#: Actions of steps whose ops are recorded.
RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
Schedule = Callable[[int], ProfilerAction]
Calls = list[Callable[[], Any]]
#: The calls of a transition, by the action of the step that ends and of the step that begins (None at stop).
Transitions = dict[tuple[ProfilerAction, ProfilerAction | None], Calls]


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
    """The schedule of a session that was given none."""
    return ProfilerAction.RECORD


def as_action(value: Any) -> ProfilerAction:
    """Our action for the return value of a schedule, which may be torch's or MindTorch's action."""
    try:
        action = ProfilerAction(getattr(value, "value", value))
    except ValueError:
        msg = f"a schedule returns a ProfilerAction for each step, got {value!r}"
        raise ValueError(msg) from None
    if action is ProfilerAction.DEVICE_STOPPED:
        msg = "ProfilerAction.DEVICE_STOPPED is set by the profiler and must not be returned by a schedule"
        raise ValueError(msg)
    return action


def transitions(
    *,
    prepare: Callable[[], Any],
    start: Callable[[], Any],
    stop: Callable[[], Any],
    deliver: Callable[[], Any],
    discard: Callable[[], Any],
) -> Transitions:
    """The calls for each pair of actions: of the step that ends, and of the one that begins, or None at stop."""
    none, warmup, record, save, stopped = ProfilerAction
    begin: Calls = [prepare, start]
    finish: Calls = [stop, deliver]
    cut: Calls = [partial(_warn_of_schedule, "RECORD is not followed by RECORD_AND_SAVE"), stop]
    unused: Calls = [partial(_warn_of_schedule, "WARMUP is not followed by RECORD"), discard]
    to_idle: Transitions = {
        (none, none): [],
        (none, warmup): [prepare],
        (warmup, none): unused,
        (warmup, warmup): [],
        (record, none): cut,
        (record, warmup): [*cut, prepare],
        (save, none): finish,
        (save, warmup): [*finish, prepare],
    }
    to_recording: Transitions = {
        (previous, current): calls
        for current in RECORDING
        for previous, calls in ((none, begin), (warmup, [start]), (record, []), (save, finish + begin))
    }
    at_stop: Transitions = {(none, None): [], (warmup, None): [discard], (record, None): finish, (save, None): finish}
    device_stopped: Transitions = {
        (warmup, stopped): [start, *finish],
        (record, stopped): finish,
        (stopped, stopped): [],
        (stopped, none): [],
        (stopped, warmup): [prepare],
        (stopped, record): begin,
        (stopped, save): begin,
        (stopped, None): [],
    }
    return to_idle | to_recording | at_stop | device_stopped


def _warn_of_schedule(problem: str) -> None:
    warn(f"Incorrect schedule: {problem}")
