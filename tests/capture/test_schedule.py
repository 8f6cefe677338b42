"""Schedules: a pure function from step to action, and its refusals."""

from enum import Enum

import pytest

from mtprof_nb import ProfilerAction, profiler, schedule
from mtprof_nb.capture.schedule import RECORDING, as_action

LETTER = {
    ProfilerAction.NONE: ".",
    ProfilerAction.WARMUP: "w",
    ProfilerAction.RECORD: "r",
    ProfilerAction.RECORD_AND_SAVE: "S",
}


def letters(steps, **numbers):
    action = schedule(**numbers)
    return "".join(LETTER[action(step)] for step in range(steps))


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ({"wait": 1, "warmup": 1, "active": 2}, ".wrS.wrS"),
        ({"wait": 1, "warmup": 1, "active": 2, "repeat": 1}, ".wrS...."),
        ({"active": 1}, "SSSSSSSS"),
        ({"skip_first": 2, "wait": 1, "active": 1, "repeat": 2}, "...S.S.."),
        ({"skip_first": 2, "wait": 2, "warmup": 1, "active": 1, "skip_first_wait": 1}, "..wS..wS"),
    ],
)
def test_a_schedule_waits_warms_up_records_and_repeats(numbers, expected):
    assert letters(8, **numbers) == expected


def test_a_schedule_says_what_torchs_says_for_every_step():
    torch = pytest.importorskip("torch")
    for numbers in (
        {"wait": 2, "warmup": 1, "active": 3, "repeat": 2, "skip_first": 3},
        {"wait": 3, "warmup": 2, "active": 1, "repeat": 2, "skip_first": 1, "skip_first_wait": 1},
    ):
        ours, theirs = schedule(**numbers), torch.profiler.schedule(**numbers)
        assert [ours(step).value for step in range(40)] == [theirs(step).value for step in range(40)]


@pytest.mark.parametrize("name", ["wait", "warmup", "active", "repeat", "skip_first", "skip_first_wait"])
@pytest.mark.parametrize("bad", [-1, 1.5, "2", None])
def test_a_number_that_is_negative_or_no_integer_is_refused_by_name(name, bad):
    with pytest.raises(ValueError, match=f"schedule: {name} must be an integer that is not negative"):
        schedule(**({"active": 1} | {name: bad}))


def test_a_schedule_without_an_active_step_is_refused():
    with pytest.raises(ValueError, match="active must be at least 1"):
        schedule(wait=1, warmup=1, active=0)


def test_what_a_schedule_returns_must_be_an_action():
    with pytest.raises(ValueError, match="returns a ProfilerAction for each step, got 'record'"):
        as_action("record")
    with pytest.raises(ValueError, match="DEVICE_STOPPED is set by the profiler"):
        as_action(ProfilerAction.DEVICE_STOPPED)


def test_an_action_equals_torchs_of_the_same_name_and_nothing_else():
    torchs = Enum("ProfilerAction", [("NONE", 0), ("WARMUP", 1)])
    other = Enum("Other", [("NONE", 0)])

    assert ProfilerAction.NONE == torchs.NONE
    assert torchs.WARMUP == ProfilerAction.WARMUP
    assert {torchs.NONE: 1}[ProfilerAction.NONE] == 1
    assert ProfilerAction.NONE not in (torchs.WARMUP, other.NONE, 0, "NONE")
    assert [schedule(wait=1, active=1)(step) for step in range(2)] == [torchs.NONE, ProfilerAction.RECORD_AND_SAVE]


def test_a_step_within_a_window_makes_no_map_of_transitions(monkeypatch):
    pytest.importorskip("torch")
    made = []
    whole = profiler.transitions
    monkeypatch.setattr(profiler, "transitions", lambda **calls: made.append(1) or whole(**calls))
    with profiler.profile(hook="kineto") as prof:
        made.clear()
        for _ in range(5):
            prof.step()
        assert made == []
    assert made == [1]
    nothing = dict.fromkeys(("prepare", "start", "stop", "deliver", "discard"), print)
    assert [whole(**nothing)[ProfilerAction.RECORD, current] for current in RECORDING] == [[], []]
