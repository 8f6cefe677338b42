"""Interrupts around a profiled cell, in the magic's own code: the shell is as before, the next profile whole."""

import contextlib
import io
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from marked_cells import new_shell
from reliability_cases import InterruptBeforeLine, nothing_left

import mtprof_nb as mtp

torch = pytest.importorskip("torch")
#: What runs a cell's recording; what it calls is held against interrupts by tests of its own.
PARTS = ("cell", "profiler.py", "errors.py", "capture/interrupts.py", "capture/imports.py")
CELL = "%%mtprofile -o prof {flags}\nx = torch.eye(2)\ny = x.mm(x)\ny.sum()"
STATEMENT = "%mtprofile {flags} x.mm(x)\nafter = 1"
NEXT = "%%mtprofile -q -o following\ny = torch.eye(2).mm(torch.eye(2))"


@pytest.fixture
def ip() -> Iterator[Any]:
    with new_shell() as shell:
        shell.ip.run_line_magic("load_ext", "mtprof_nb")
        shell.ip.run_cell("import torch\nx = torch.eye(2)")
        yield shell.ip
        shell.ip.run_line_magic("unload_ext", "mtprof_nb")


def _callbacks(ip: Any) -> list[Any]:
    return [call for calls in ip.events.callbacks.values() for call in calls if "mtprof" in call.__module__]


def _run(ip: Any, flags: str, line: int, cell: str = CELL) -> int:
    """How many lines of ours the cell ran, interrupted before one of them."""
    # IPython replaces a method of the stream while it writes, and does not put it back where it is interrupted.
    streams = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
    with streams[0], streams[1], InterruptBeforeLine(line, *PARTS) as interrupt:
        try:
            ip.run_cell(cell.format(flags=flags))
        except KeyboardInterrupt:  # in our own callback, and IPython lets it through
            assert 0 < line <= interrupt.seen
    return interrupt.seen


@pytest.mark.soak
@pytest.mark.parametrize("flags", ["", "--hook kineto", "-q"])
def test_an_interrupt_before_any_line_of_the_magic_leaves_nothing(
    ip: Any, flags: str, rounds: Callable[[int, int], int]
) -> None:
    usual = _callbacks(ip)
    for _ in range(2):
        lines = _run(ip, flags, 0)
    assert lines > 150
    moments = min(rounds(120, lines), lines)
    for moment in range(moments):
        with nothing_left():
            # From the end, for that is where most can be lost.
            _run(ip, flags, lines - moment)
            # Where IPython itself was interrupted, the end of a cell is reported with the next one's.
            ip.run_cell("0;")
            assert mtp.active() is None
            assert _callbacks(ip) == usual
        ip.run_cell(NEXT)
        assert [event.name for event in ip.user_ns["following"].events()].count("aten::mm") == 1
    print(f"{moments} of {lines} lines")


@pytest.mark.soak
@pytest.mark.parametrize("flags", ["--with-stack", "--hook kineto", "-q"])
def test_a_traceback_is_never_drawn_while_a_profile_records(
    ip: Any, flags: str, rounds: Callable[[int, int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(type(ip), "showtraceback", lambda *_args, **_options: drawn.append(mtp.active()))
    for _ in range(2):
        lines = _run(ip, flags, 0)
    apart = max(lines // rounds(150, lines), 1)
    for line in range(1, lines + 1, apart):
        _run(ip, flags, line)
        assert set(drawn) <= {None}, f"before line {line} of {lines}"
        ip.run_cell("0;")
    assert len(drawn) > 20


@pytest.mark.soak
@pytest.mark.parametrize("flags", ["", "--hook kineto", "-q"])
def test_an_interrupt_before_any_line_of_a_statement_ends_the_cell(
    ip: Any, flags: str, rounds: Callable[[int, int], int]
) -> None:
    for _ in range(2):
        lines = _run(ip, flags, 0, STATEMENT)
    assert ip.user_ns.pop("after") == 1
    apart = max(lines // rounds(100, lines), 1)
    for line in range(1, lines + 1, apart):
        with nothing_left():
            # On a slow machine the live table is drawn more often: a later run may have fewer lines than the first.
            was_interrupted = _run(ip, flags, line, STATEMENT) >= line
            assert (ip.user_ns.pop("after", 0) == 0) == was_interrupted, f"before line {line} of {lines}"
            ip.run_cell("0;")
            assert mtp.active() is None


@pytest.mark.parametrize("flags", ["", "--hook candle"])
def test_a_recording_that_cannot_start_leaves_the_shell_as_it_was(ip: Any, flags: str) -> None:
    display = sys.displayhook
    # Kineto serves one profiler alone.
    with torch.profiler.profile():
        ip.run_cell(f"%%mtprofile {flags}\n1")
    assert (sys.displayhook, "showtraceback" in vars(ip)) == (display, False)


def test_a_cell_that_stops_its_own_recording_has_it(ip: Any, capsys: pytest.CaptureFixture[str]) -> None:
    ip.run_cell("%%mtprofile -q -o mine\nimport mtprof_nb\ny = x.mm(x)\nmtprof_nb.active().stop()\ny = x.mm(x)")

    assert [event.name for event in ip.user_ns["mine"].events()].count("aten::mm") == 1
    assert (mtp.active(), capsys.readouterr().err) == (None, "")


def test_what_fails_at_the_end_keeps_nothing_else_from_ending(ip: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Any) -> None:
        raise ValueError

    with monkeypatch.context() as patch:
        patch.setattr("mtprof_nb.capture.imports.ImportWatcher.remove", fail)
        ip.run_cell(NEXT)
    assert mtp.active() is None
    ip.run_cell(NEXT)
    assert [event.name for event in ip.user_ns["following"].events()].count("aten::mm") == 1
