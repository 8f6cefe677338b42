"""Differences between the recordings themselves, and what is not compared because of them."""

import json

import pytest
from traces import event, make_trace
from two_programs import run, sides

from mtprof_nb.model.trace import Recorded, Trace

MM = ("aten::mm", 100)


def test_recordings_that_were_made_alike_have_no_notes() -> None:
    two = sides(run(MM, hooks=("kineto",)), run(MM, hooks=("kineto",)))

    assert two.notes() == []
    assert two.why_incomparable == ""


def test_different_hooks_are_named() -> None:
    two = sides(run(MM, hooks=("kineto",)), run(MM, hooks=("native",)))

    assert two.notes() == [
        "Hooks differ (a: kineto; b: native): rows of one side alone are left out, and counts and times not judged."
    ]
    assert two.why_incomparable == "the two sides were recorded by different hooks"


def test_different_flags_are_named() -> None:
    two = sides(run(MM, recorded=Recorded(with_stack=True)), run(MM))

    assert two.notes() == [
        "Flags differ (a: with_stack; b: none): only what both have is compared, and times are not judged."
    ]


def test_missing_events_are_named() -> None:
    two = sides(run(MM), run(MM, dropped=3))

    assert two.notes() == ["b lacks events: rows of one side alone are left out, and counts and times not judged."]
    assert two.why_incomparable == "a recording lacks events"


@pytest.mark.parametrize(
    ("a", "b", "note"),
    [
        (3, 3, []),
        (2, 3, ["Steps differ (a: 2; b: 3): counts, bytes and times are those of one step."]),
        (3, 1, ["Steps were marked on one side only: whole recordings are compared."]),
    ],
)
def test_different_numbers_of_steps_are_named(a: int, b: int, note: list[str]) -> None:
    assert sides(run(MM, steps=a), run(MM, steps=b)).notes() == note


def test_steps_that_are_calls_of_a_function_are_called_so() -> None:
    two = sides(run(MM, steps=5), run(MM, steps=5), steps_are_calls=True)

    assert two.notes() == ["Phases, lines and ops are those of one call, from one recording of each (5 calls)."]
    assert two.divisor(two.a.runs[0]) == 5


def _on(device: str, host: str, world_size: int) -> Trace:
    metadata = {
        "deviceProperties": json.dumps([{"id": 0, "name": device}, {"id": 1, "name": device}]),
        "distributedInfo": json.dumps({"world_size": world_size}),
    }
    return make_trace([event("aten::mm", 0, 10)], host=host, metadata=metadata)


def test_different_machines_devices_and_jobs_are_named() -> None:
    assert sides(_on("A100", "one", 8), _on("V100", "two", 2)).notes() == [
        "Machines differ (a: one; b: two).",
        "Devices differ (a: A100; b: V100).",
        "Numbers of processes in the job differ (a: 8; b: 2).",
    ]


@pytest.mark.parametrize("text", ["", "{", "3", '{"name": 3}', '[{"name": []}, 7]'])
def test_metadata_of_any_form_is_harmless(text: str) -> None:
    odd = make_trace([event("aten::mm", 0, 10)], metadata={"deviceProperties": text, "distributedInfo": text})

    assert sides(odd, run(MM)).notes() == []
