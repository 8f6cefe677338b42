"""The comparison of a real pair of recordings, against counts read from their files."""

from collections import Counter
from functools import lru_cache

import pytest
from real_traces import plain_events, trace_path

from mtprof_nb import Comparison, compare

BEFORE, AFTER = "a100_before", "v100_after"


@pytest.fixture(scope="module")
def found() -> Comparison:
    return compare(trace_path(BEFORE), trace_path(AFTER))


@lru_cache
def _events(name: str) -> list[tuple[str, str]]:
    """Category and name of each event."""
    return [(event.get("cat", ""), event["name"]) for event in plain_events(name) if event.get("ph") == "X"]


def _counts(name: str, *categories: str) -> Counter[str]:
    return Counter(event for category, event in _events(name) if category in categories)


def test_every_kernel_has_its_number_of_calls_on_both_sides(found: Comparison) -> None:
    before, after = (_counts(name, "kernel", "gpu_memcpy", "gpu_memset") for name in (BEFORE, AFTER))
    rows = [row for row in found.differences if row.level == "kernel"]

    assert {row.name: row.a_calls for row in rows if row.a_calls} == before
    assert {row.name: row.b_calls for row in rows if row.b_calls} == after
    assert {row.name for row in rows if row.change == "new"} == set(after) - set(before)
    assert {row.name for row in rows if row.change == "gone"} == set(before) - set(after)


def test_ops_that_are_new_or_gone_are_those_of_one_file_alone(found: Comparison) -> None:
    before, after = (set(_counts(name, "cpu_op")) for name in (BEFORE, AFTER))
    rows = [row for row in found.differences if row.level == "op"]

    assert {row.name for row in rows if row.change == "new"} == after - before
    assert {row.name for row in rows if row.change == "gone"} == before - after


def test_one_recording_of_each_machine_gives_no_verdict_and_names_them(found: Comparison) -> None:
    assert found.labels == (BEFORE, AFTER)
    assert found.verdict.answer == "cannot tell"
    assert found.verdict.ratio == pytest.approx(1.49, abs=0.01)
    assert "Devices differ (a: NVIDIA A100-PG509-200; b: Tesla V100-SXM2-16GB)." in found.notes
    assert "Numbers of processes in the job differ (a: 8; b: 2)." in found.notes
