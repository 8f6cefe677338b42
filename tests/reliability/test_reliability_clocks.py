"""A clock that jumps while the program runs: no negative duration, and nothing in the wrong order."""

import json
import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
from recording import EVERY_FLAG

from mtprof_nb.capture.clock import Clock

torch = pytest.importorskip("torch")
HOUR_NS = 3_600 * 10**9


@pytest.mark.parametrize("jump_ns", [-HOUR_NS, HOUR_NS])
def test_the_clock_of_a_session_never_goes_back(monkeypatch: pytest.MonkeyPatch, jump_ns: int) -> None:
    clock = Clock()
    before = clock.now_ns()
    true_time = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: true_time() + jump_ns)
    readings = [before, *(clock.now_ns() for _ in range(1000))]
    assert all(first <= second for first, second in pairwise(readings))
    assert readings[-1] - before < HOUR_NS // 2


#: Sets the system's clock, as this process sees it, in the middle of a recording of six steps of 100 ms and more.
PROGRAM = """
import json, os, sys, time, warnings
from pathlib import Path
import torch
import mtprof_nb as mtp

clock, jump, flags = Path(os.environ["FAKETIME_TIMESTAMP_FILE"]), sys.argv[1], json.loads(sys.argv[2])
x, between = torch.ones(8), []
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with mtp.profile(**flags) as prof:
        for number in range(6):
            began = time.perf_counter_ns()
            with mtp.record_function(f"scope {number}"):
                inside = time.perf_counter_ns()
                torch.sin(x)
                while time.perf_counter_ns() < inside + 100_000_000:
                    sum(range(200_000))
                inside = time.perf_counter_ns() - inside
            between.append((inside, time.perf_counter_ns() - began))
            mtp.step()
            if number == 2:
                was = time.time()
                clock.write_text(jump)
                while abs(time.time() - was) < 1800:  # the file is read once a second
                    sum(range(200_000))
trace = prof.trace
rows = [row for row in range(len(trace)) if trace.names[trace.name[row]].startswith("scope ")]
sines = [row for row in range(len(trace)) if trace.names[trace.name[row]] == "aten::sin"]
print(json.dumps({
    "warnings": [str(one.message) for one in caught if issubclass(one.category, mtp.MtprofWarning)],
    "scopes": [trace.names[trace.name[row]] for row in rows],
    "steps": [int(trace.step[row]) for row in sines],
    "durations": [int(trace.duration_ns[row]) for row in rows],
    "between": between,
    "shortest": int(trace.duration_ns.min()),
    "window_s": (trace.ended_ns - trace.began_ns) / 1e9,
    "inside": bool((trace.start_ns >= trace.began_ns - 10**9).all() and (trace.end_ns <= trace.ended_ns + 10**9).all()),
}))
"""


@pytest.fixture
def faked_time(tmp_path: Path) -> dict[str, str]:
    """The environment of a process whose wall clock a file sets; without the library the test is skipped."""
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
    if not found:
        reason = "no libfaketime to set a process's clock with (Debian: apt-get install libfaketime)"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    (tmp_path / "clock").write_text("+0")
    faked = {"LD_PRELOAD": str(found[0]), "FAKETIME_TIMESTAMP_FILE": str(tmp_path / "clock")}
    return os.environ | faked | {"FAKETIME_CACHE_DURATION": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


@pytest.mark.parametrize(
    ("hook", "flags"),
    [("kineto", {}), ("kineto", EVERY_FLAG)],
    ids=["kineto", "kineto-every-flag"],
)
@pytest.mark.parametrize("jump", ["+1h", "-1h"])
def test_a_system_clock_that_is_set_during_a_recording_leaves_order_and_durations(
    faked_time: dict[str, str], jump: str, hook: str, flags: dict[str, bool]
) -> None:
    command = [sys.executable, "-c", PROGRAM, jump, json.dumps({"hook": hook, **flags})]
    ran = subprocess.run(command, env=faked_time, capture_output=True, text=True, check=True)
    seen = json.loads(ran.stdout.splitlines()[-1])

    assert seen["scopes"] == [f"scope {number}" for number in range(6)]
    assert seen["shortest"] >= 0
    assert seen["inside"]
    assert 0.6 <= seen["window_s"] < 1800
    if jump == "-1h":
        assert any("clock was set back" in one and "durations" in one for one in seen["warnings"])
    else:
        bounds = zip(seen["durations"], seen["between"], strict=True)
        assert all(0.5 * inside < duration < 1.5 * around for duration, (inside, around) in bounds), seen
