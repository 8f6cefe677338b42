"""Other profilers, debuggers and coverage at the same time: they keep working, and so does the recording."""

import cProfile
import pstats
import subprocess
import sys
import threading
import trace
from types import FrameType
from typing import Any

import pytest
from recording import EVERY_FLAG
from reliability_cases import IDS, RECORDINGS, assert_next_profile_is_complete, names

import mtprof_nb as mtp
from mtprof_nb.views.strip import strip_of

torch = pytest.importorskip("torch")
NEEDS_THE_SLOT = {"hook": "kineto", **EVERY_FLAG}
#: From 3.12 on it has a place of its own.
CPROFILE_TAKES_THE_SLOT = sys.version_info < (3, 12)
#: There, torch's tracer of Python takes that place as well as its own.
TORCH_TAKES_BOTH = sys.version_info[:2] == (3, 12)
NOT_RECORDED = "stacks and modules are not recorded: another profiler of Python, such as cProfile, is active"


def first() -> Any:
    return torch.mm(torch.ones(2, 2), torch.ones(2, 2))


def second() -> Any:
    return torch.mm(torch.ones(2, 2), torch.ones(2, 2))


def calls_of(profiler: cProfile.Profile) -> dict[str, int]:
    stats: dict[tuple[str, int, str], tuple[int, ...]] = pstats.Stats(profiler).stats  # type: ignore[attr-defined]
    return {where[2]: facts[0] for where, facts in stats.items() if where[2] in ("first", "second")}


@pytest.mark.parametrize("recording", RECORDINGS, ids=IDS)
def test_cprofile_that_is_active_goes_on(recording: dict[str, Any]) -> None:
    profiler = cProfile.Profile()
    profiler.enable()
    try:
        if recording == NEEDS_THE_SLOT and CPROFILE_TAKES_THE_SLOT:
            with pytest.warns(mtp.MtprofWarning, match=NOT_RECORDED), mtp.profile(**recording) as prof:
                first()
        else:
            with mtp.profile(**recording) as prof:
                first()
        second()
    finally:
        profiler.disable()
    assert calls_of(profiler) == {"first": 1, "second": 1}
    assert names(prof).count("aten::mm") == 1
    assert_next_profile_is_complete(**recording)


@pytest.mark.parametrize("of_threads", [False, True], ids=["sys", "threading"])
def test_a_profile_function_stays_in_its_place(of_threads: bool) -> None:
    seen = []

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and frame.f_code.co_name in ("first", "second"):
            seen.append(frame.f_code.co_name)

    place = threading if of_threads else sys
    place.setprofile(note)
    try:
        prof = mtp.profile(hook="kineto", with_stack=True)
        with pytest.warns(mtp.MtprofWarning, match=NOT_RECORDED), prof:  # noqa: PT031
            thread = threading.Thread(target=first)
            thread.start()
            thread.join()
            second()
        assert place.getprofile() is note
    finally:
        place.setprofile(None)
    assert seen == (["first"] if of_threads else ["second"])
    assert names(prof).count("aten::mm") == 1, "of the thread that profiles"


@pytest.mark.parametrize("recording", RECORDINGS, ids=IDS)
def test_a_debugger_s_trace_function_sees_every_line_and_stays(recording: dict[str, Any]) -> None:
    lines = []

    def note(frame: FrameType, event: str, _argument: Any) -> Any:
        if frame.f_code.co_name in ("first", "second"):
            if event == "line":
                lines.append(frame.f_code.co_name)
            return note
        return None

    sys.settrace(note)
    try:
        with mtp.profile(**recording) as prof:
            first()
        second()
        assert sys.gettrace() is note
    finally:
        sys.settrace(None)
    assert lines == ["first", "second"]
    assert names(prof).count("aten::mm") == 1


@pytest.mark.parametrize("recording", RECORDINGS, ids=IDS)
def test_torch_s_profiler_works_before_and_after(recording: dict[str, Any]) -> None:
    for _ in range(2):
        with torch.profiler.profile() as theirs:
            first()
        with mtp.profile(**recording) as ours:
            first()
        assert [event.name for event in theirs.events()].count("aten::mm") == 1
        assert names(ours).count("aten::mm") == 1


def test_a_torch_profiler_of_all_threads_is_refused_and_goes_on() -> None:
    every_thread = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
    with torch.profiler.profile(experimental_config=every_thread) as theirs:
        first()
        with pytest.raises(mtp.SessionError, match="a torch profiler is already active"), mtp.profile(hook="kineto"):
            pass
        first()
    assert [event.name for event in theirs.events()].count("aten::mm") == 2


def test_torch_s_profiler_inside_works_and_the_recording_it_empties_says_so() -> None:
    # In a process of its own: torch prints a line of C++ then.
    program = """
import warnings, torch, mtprof_nb as mtp
warnings.simplefilter("always")
x = torch.ones(2)
for hook in ("kineto",):
    with warnings.catch_warnings(record=True) as caught, mtp.profile(hook=hook) as ours:
        torch.sin(x)
        with torch.profiler.profile() as theirs:
            torch.cos(x)
        torch.tan(x)
    print(hook, "aten::cos" in {event.name for event in theirs.events()}, len(ours.trace))
    print([str(one.message)[:46] for one in caught if issubclass(one.category, mtp.MtprofWarning)])
    with mtp.profile(hook=hook) as ours:
        torch.sin(x)
    print("next", len(ours.trace))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout.splitlines() == [
        "kineto True 0",
        "['a torch profiler was started during the record']",
        "next 1",
    ], done.stderr


def test_a_framework_s_nested_profile_is_refused_and_its_own_fallback_is_up_to_it() -> None:
    # As a trainer does that wraps each stage in a profiler of its own.
    stages = []
    with mtp.profile(name="user's") as outer:
        for _ in range(3):
            try:
                with mtp.profile(name="trainer's"):
                    first()
            except RuntimeError as error:
                stages.append(str(error))
                first()
    assert len(stages) == 3
    assert all(one.startswith('profiler "user\'s" is already active: stop it before another one') for one in stages)
    assert names(outer).count("aten::mm") == 3


@pytest.mark.parametrize("recording", RECORDINGS, ids=IDS)
def test_line_coverage_is_complete(recording: dict[str, Any]) -> None:
    def both() -> mtp.profile:
        with mtp.profile(**recording) as prof:
            first()
        second()
        return prof

    # The standard library's own, which uses `sys.settrace` as other tools do.
    counter = trace.Trace(count=True, trace=False)
    prof = counter.runfunc(both)
    counts = counter.results().counts  # type: ignore[attr-defined]
    for function in (first, second):
        assert counts[__file__, function.__code__.co_firstlineno + 1] == 1
    assert names(prof).count("aten::mm") == 1


def test_a_torch_profiler_started_inside_and_stopped_after_leaves_nothing_of_its_own_here() -> None:
    x = torch.ones(2)
    prof, inner = mtp.profile(hook="kineto"), torch.profiler.profile()
    prof.start()
    torch.sin(x)
    inner.start()
    torch.cos(x)
    with pytest.warns(mtp.MtprofWarning, match="has emptied it, because Kineto supports one profiler at a time"):
        prof.stop()
    inner.stop()
    assert names(prof) == []
    assert prof.trace.is_partial
    assert strip_of(prof.trace).notes == (
        "Nothing was recorded: another profiler emptied the recording, or the activities that ran were off.",
    )
    assert_next_profile_is_complete()
