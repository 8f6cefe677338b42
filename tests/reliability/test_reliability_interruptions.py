"""Interrupts, exits and failures at every point of a recording: nothing stays, and the user's exception arrives."""

import _thread
import ctypes
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from recording import EVERY_FLAG, HOOKS, NATIVE
from reliability_cases import (
    IDS,
    RECORDINGS,
    InterruptBeforeLine,
    assert_next_profile_is_complete,
    names,
    nothing_left,
)

import mtprof_nb as mtp
from mtprof_nb.capture import finish, window
from mtprof_nb.capture.interrupts import interrupts_held_back, threads_without_signals
from mtprof_nb.capture.kineto import exported_trace
from mtprof_nb.capture.kineto import kineto_hook as kineto

torch = pytest.importorskip("torch")
KINETO = torch.autograd.profiler.profile


def work() -> None:
    x = torch.ones(2, 2)
    torch.mm(x, x)


def start_under(line: int, recording: dict[str, Any]) -> int:
    interrupt = InterruptBeforeLine(line)
    with interrupt, mtp.profile(**recording):
        sys.settrace(None)
    return interrupt.seen


def stop_under(line: int, recording: dict[str, Any]) -> int:
    interrupt = InterruptBeforeLine(line)
    try:
        with mtp.profile(**recording):
            work()
            interrupt.__enter__()
    finally:
        sys.settrace(None)
    return interrupt.seen


def interrupt_at(share: float, lines: int, run: Callable[..., int], recording: dict[str, Any]) -> int:
    """Interrupt a run after this share of its lines, and return how many it has.

    A run has more or fewer lines, by how many samples are taken: one that ends before its line came is tried again.
    """
    for _ in range(20):
        line = 1 + int(share * lines)
        try:
            seen = run(line, recording)
        except KeyboardInterrupt:
            return lines
        assert seen < line
        lines = seen
    pytest.fail("no run had as many lines as the one before")


@pytest.mark.soak
@pytest.mark.parametrize("run", [start_under, stop_under])
@pytest.mark.parametrize("recording", RECORDINGS, ids=IDS)
def test_an_interrupt_before_any_line_of_start_and_stop_arrives_and_leaves_nothing(
    recording: dict[str, Any], run: Callable[..., int], rounds: Callable[[int, int], int]
) -> None:
    run(0, recording)
    lines = run(0, recording)
    assert lines > 50
    moments = min(rounds(25, lines), lines)
    for moment in range(moments):
        with nothing_left():
            lines = interrupt_at(moment / moments, lines, run, recording)
        if moment % 10 == 0:
            assert_next_profile_is_complete(**recording)
    assert_next_profile_is_complete(**recording)


class Late(Exception):
    """Raised by the handler of an alarm, as time limits do."""


@contextmanager
def alarms() -> Iterator[None]:
    """SIGALRM raises `Late`."""

    def raise_late(*_: Any) -> None:
        raise Late

    before = signal.signal(signal.SIGALRM, raise_late)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="this system has no alarms")
@pytest.mark.parametrize("hook", [NATIVE])
def test_an_alarm_before_any_line_that_starts_or_stops_the_recorder_leaves_nothing(
    hook: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(InterruptBeforeLine, "number", signal.SIGALRM)
    parts = [f"capture/{name}.py" for name in ("native/native_hook", "native/native_sampler", "sampling", "window")]
    line, seen = 0, 1
    with alarms():
        while line < seen:
            interrupt = InterruptBeforeLine(line, *parts)
            with nothing_left(), suppress(Late), interrupt, mtp.profile(hook=hook, **EVERY_FLAG):
                work()
            assert_next_profile_is_complete(hook=hook, with_python=True)
            line, seen = line + 1, max(seen, interrupt.seen)
    assert seen > 50


STEPS: list[tuple[str, Any, str]] = [
    *(("kineto", KINETO, step) for step in ("_prepare_trace", "_start_trace", "__exit__")),
    ("kineto", kineto, "exported_trace"),
    ("kineto", exported_trace, "read"),
    ("kineto", exported_trace.Noted, "note"),
    ("kineto", finish, "merge"),
    ("kineto", window.Window, "prepare"),
    ("kineto", finish, "mark_interleaved"),
]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("is_before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize(("hook", "owner", "step"), STEPS, ids=lambda value: getattr(value, "__name__", None))
def test_a_step_of_start_or_stop_that_fails_is_told_and_leaves_nothing(
    hook: str, owner: Any, step: str, is_before: bool, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    true_step = getattr(owner, step)
    calls = []

    def fail(*args: Any, **kwargs: Any) -> Any:
        calls.append(step)
        if len(calls) > 1:
            return true_step(*args, **kwargs)
        if not is_before or "remove" in step or step in ("stop", "__exit__"):
            true_step(*args, **kwargs)
        raise error("injected")

    flags = {"with_stack": True, "profile_memory": True}
    with nothing_left(), monkeypatch.context() as patch:
        patch.setattr(owner, step, fail)
        with pytest.raises(error, match="injected"), mtp.profile(hook=hook, **flags):
            work()
        assert calls
        patch.undo()
    assert_next_profile_is_complete(hook=hook)


@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("recording", RECORDINGS, ids=IDS)
def test_what_is_raised_inside_an_op_between_ops_and_in_on_trace_ready_arrives(
    recording: dict[str, Any], error: type[BaseException]
) -> None:
    class Raising(torch.autograd.Function):
        @staticmethod
        def forward(_context: Any, x: Any) -> Any:
            torch.sin(x)
            raise error("theirs")

        @staticmethod
        def backward(_context: Any, gradient: Any) -> Any:
            return gradient

    def fail(_: Any) -> None:
        raise error("theirs")

    for run in (lambda: Raising.apply(torch.ones(2)), lambda: fail(None)):
        prof = mtp.profile(**recording)
        with nothing_left(), pytest.raises(error, match="theirs") as raised, prof:  # noqa: PT012
            torch.cos(torch.ones(2))
            run()
        assert raised.value.__context__ is None
        assert "aten::cos" in names(prof)
    prof = mtp.profile(on_trace_ready=fail, **recording)
    with nothing_left(), pytest.raises(error, match="theirs"), prof:
        work()
    assert "aten::mm" in names(prof)
    assert_next_profile_is_complete(**recording)


def test_a_callback_that_fails_once_does_not_spoil_the_windows_that_follow() -> None:
    seen = []

    def fail_first(prof: Any) -> None:
        seen.append(names(prof).count("aten::mm"))
        if len(seen) == 1:
            raise KeyError("once")

    with mtp.profile(schedule=mtp.schedule(warmup=1, active=1), on_trace_ready=fail_first) as prof:
        for _ in range(6):
            work()
            try:
                prof.step()
            except KeyError:
                assert len(seen) == 1
    assert seen == [1, 1, 1]


def test_a_panel_that_is_interrupted_while_it_is_made_leaves_the_profile_as_it_was(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from mtprof_nb.views.panel import show_panel as panel
    from mtprof_nb.views.static import static_page as static

    with mtp.profile() as prof:
        work()
    for error in (KeyboardInterrupt, SystemExit, ValueError):

        def fail(*_: Any, error: type[BaseException] = error, **__: Any) -> Any:
            raise error("in the panel")

        monkeypatch.setattr(static, "text", fail)
        with nothing_left(), pytest.raises(error, match="in the panel"):
            panel.panel(prof.trace)
    monkeypatch.undo()
    prof.show()
    assert "aten::mm" in capsys.readouterr().out


def test_an_interrupt_during_the_last_operator_of_the_block_ends_the_recording() -> None:
    for recording in RECORDINGS:
        prof = mtp.profile(**recording)
        with nothing_left(), pytest.raises(KeyboardInterrupt) as raised, prof:  # noqa: PT012
            work()
            # As during a long `a @ b`, Python notices the signal only when it enters `__exit__`.
            interrupt = map(getattr(ctypes.CDLL(None), "raise"), [signal.SIGINT])
            _ = [*interrupt]
        assert raised.traceback[-1].name == "_leave"
        assert "aten::mm" in names(prof)
        assert_next_profile_is_complete(**recording)


def test_holding_interrupts_back_in_a_foreign_thread_leaves_no_dummy_thread() -> None:
    done, known = threading.Lock(), []
    done.acquire()

    def foreign() -> None:
        with interrupts_held_back():
            known.append(threading.get_ident() in {thread.ident for thread in threading.enumerate()})
        done.release()

    _thread.start_new_thread(foreign, ())
    assert done.acquire(timeout=300)
    assert known == [False]


def test_looking_at_a_profiler_s_exit_does_not_end_it() -> None:
    with mtp.profile() as prof:
        assert hasattr(prof, "__exit__")
        work()
    assert "aten::mm" in names(prof)


@pytest.mark.parametrize("recording", [*RECORDINGS, {"hook": "kineto", "warm up": True}], ids=[*IDS, "kineto-warming"])
def test_a_program_that_ends_while_it_records_keeps_its_exit_code(recording: dict[str, Any]) -> None:
    recording = dict(recording)
    schedule = "schedule=mtp.schedule(warmup=1, active=1)," if recording.pop("warm up", False) else ""
    program = f"""
import sys, torch, mtprof_nb as mtp
prof = mtp.profile({schedule} **{recording!r})
prof.start()
torch.ones(2)
sys.exit(7)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300)
    assert (ended.returncode, ended.stderr) == (7, "")


def test_a_failure_to_finish_is_a_warning_beside_the_users_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("no trace")

    monkeypatch.setattr(kineto, "exported_trace", broken)
    prof = mtp.profile(hook="kineto")
    with warnings.catch_warnings(record=True) as caught, pytest.raises(ZeroDivisionError), prof:  # noqa: PT012
        warnings.simplefilter("always")
        work()
        1 / 0  # noqa: B018
    assert [str(one.message) for one in caught] == ["the profiler could not finish: no trace"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux tells which signals a thread blocks")
@HOOKS
def test_threads_of_the_profiler_take_no_signal_that_the_program_waits_for(hook: str) -> None:
    tasks = Path("/proc/self/task")
    before = set(tasks.iterdir())
    with mtp.profile(hook=hook, with_stack=True, with_python=True):
        texts = [(task / "status").read_text() for task in set(tasks.iterdir()) - before]

    blocked = [int(text.partition("SigBlk:")[2].split()[0], 16) for text in texts]
    assert blocked
    assert all(mask >> (signal.SIGUSR1 - 1) & 1 for mask in blocked)
    assert signal.SIGUSR1 not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_a_handler_that_raises_leaves_no_signal_blocked() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with pytest.raises(KeyboardInterrupt), threads_without_signals():
        signal.raise_signal(signal.SIGINT)  # comes at the end of the block
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
