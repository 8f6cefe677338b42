"""The line that says that a cell is being recorded: there while somebody waits, and gone without a trace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import Kernel, Ran, is_panel

#: A frontend with a person before it can answer a question; nbconvert, nbval and their like say that they cannot.
WATCHED: dict[str, Any] = {"allow_stdin": True}
LONG = "import time\ntime.sleep(0.5)"


def _set_second(kernel: Kernel, seconds: float) -> None:
    kernel.run(f"import mtprof_nb.cell.progress as progress\nprogress.INTERVAL_S = {seconds}\ndel progress")


@pytest.fixture
def quick(kernel: Kernel) -> Iterator[Kernel]:
    """The kernel with a second of a twentieth."""
    _set_second(kernel, 0.05)
    yield kernel
    _set_second(kernel, 1.0)


@pytest.fixture
def slow(kernel: Kernel) -> Iterator[Kernel]:
    """The kernel with a second of ten minutes: any cell is short."""
    _set_second(kernel, 600.0)
    yield kernel
    _set_second(kernel, 1.0)


def _lines(ran: Ran) -> list[str]:
    """The texts of the line, message by message; "" where it was emptied."""
    shown = [c for k, c in ran.messages if k.endswith("display_data") and not is_panel(c) and c["transient"]]
    assert len({content["transient"]["display_id"] for content in shown}) <= 1
    return [content["data"]["text/plain"] for content in shown]


def test_a_cell_of_more_than_a_second_says_that_it_is_recorded_and_then_no_more(kernel: Kernel) -> None:
    ran = kernel.run("%%mtprofile\nimport time\ntime.sleep(1.3)", **WATCHED)
    number = ran.reply["execution_count"]

    first, *later, last = _lines(ran)
    # On a slow machine the first may come later, and there is one for each second.
    assert re.fullmatch(rf"Cell \[{number}\]: recording, \d+ s", first)
    assert re.fullmatch(rf"Cell \[{number}\]: reading what was recorded, \d+ s", later[-1])
    assert last == ""
    assert [kind for kind, _ in ran.messages if kind.endswith("display_data")] == [
        "display_data",
        *["update_display_data"] * (len(later) + 1),
        "display_data",
        "display_data",
        "display_data",
    ]
    assert is_panel(ran.messages[-3][1])


def test_a_short_cell_says_nothing(slow: Kernel) -> None:
    assert _lines(slow.run("%%mtprofile\nx = torch.ones(1)", **WATCHED)) == []


def test_the_line_is_one_display_that_is_rewritten_and_at_the_end_holds_nothing(quick: Kernel) -> None:
    ran = quick.run(f"%%mtprofile --name '<b>'\n{LONG}", **WATCHED)
    first, *rest, _, _ = [c for k, c in ran.messages if k.endswith("display_data") and not is_panel(c)]

    assert first["data"]["text/html"] == "<small>&lt;b&gt;: recording, 0 s</small>"
    assert len(rest) >= 2
    assert rest[-1]["data"] == {"text/plain": "", "text/html": ""}


def test_steps_are_counted(quick: Kernel) -> None:
    loop = "import mtprof_nb, time\nfor i in mtprof_nb.steps(range(10)):\n    time.sleep(0.05)"
    lines = _lines(quick.run(f"%%mtprofile --name loop\n{loop}", **WATCHED))

    assert any("step" in line for line in lines)
    assert lines[-1] == ""


@pytest.mark.parametrize(
    "cell", [f"{LONG}\n1 / 0", f"{LONG}\nimport sys\nsys.exit()", f"{LONG}\nraise KeyboardInterrupt"]
)
def test_the_line_goes_away_when_the_cell_fails(quick: Kernel, cell: str) -> None:
    ran = quick.run(f"%%mtprofile\n{cell}", **WATCHED)

    assert ran.status == "error"
    assert _lines(ran)[0] is not None
    assert _lines(ran)[-1] == ""


def test_the_line_goes_away_when_the_cell_is_interrupted(quick: Kernel) -> None:
    cell = "%%mtprofile\nimport time\ntime.sleep(0.3)\nprint('go', flush=True)\ntime.sleep(60)"
    ran = quick.interrupt_when(cell, "go", **WATCHED)

    assert ran.status == "error"
    assert _lines(ran)[-1] == ""


def test_the_line_is_there_while_a_cell_awaits_and_while_a_statement_runs(quick: Kernel) -> None:
    awaited = quick.run("%%mtprofile\nimport asyncio\nawait asyncio.sleep(0.3)", **WATCHED)
    statement = quick.run("import time\n%mtprofile time.sleep(0.3)", **WATCHED)

    assert _lines(awaited)[0] is not None
    assert _lines(statement)[0] is not None


def test_what_the_cell_captures_is_its_own_output_alone(quick: Kernel) -> None:
    ran = quick.run(f"%%mtprofile\n%%capture captured\n{LONG}\nprint(1)\ndisplay(2)", **WATCHED)

    assert _lines(ran)[0] is not None
    assert quick.value("(captured.stdout, len(captured.outputs))") == ("1\n", 1)


@pytest.mark.parametrize("flags", ["", "-q"])
def test_headless_execution_shows_no_line(quick: Kernel, flags: str) -> None:
    assert _lines(quick.run(f"%%mtprofile {flags}\n{LONG}", allow_stdin=False)) == []


def test_a_quiet_cell_still_says_that_it_is_recorded(quick: Kernel) -> None:
    ran = quick.run(f"%%mtprofile -q\n{LONG}", **WATCHED)

    assert _lines(ran)[-1] == ""
    assert ran.panels == []


def test_a_second_passes_between_two_lines(kernel: Kernel) -> None:
    """The line costs two messages a second at most: a fraction of a millisecond."""
    assert kernel.value("__import__('mtprof_nb.cell.progress', fromlist=['_']).INTERVAL_S") == 1.0


def test_a_longer_cell_tells_what_has_cost_most_so_far(quick: Kernel) -> None:
    where = "mtprof_nb.capture.native.recorder_loading"
    if quick.value(f"__import__('importlib').import_module('{where}').why_not()"):
        pytest.skip("no native recorder is built")
    cell = "import time\nend = time.time() + 0.6\nwhile time.time() < end:\n    torch.ones(8, 8) @ torch.ones(8, 8)"
    lines = [line for line in _lines(quick.run(f"%%mtprofile --name loop\n{cell}", **WATCHED)) if line]

    head, slowest, ops, memory = next(line for line in lines if "ops: " in line).splitlines()
    assert head.startswith("loop: recording")
    assert slowest.endswith("line 5  torch.ones(8, 8) @ torch.ones(8, 8)")
    assert "aten::" in ops
    assert memory.startswith("memory of the process: ")


@pytest.mark.parametrize("hook", ["auto"])
def test_a_cell_that_runs_on_after_its_recording_was_full_says_so(quick: Kernel, hook: str) -> None:
    cell = "import time\nend = time.time() + 0.6\nwhile time.time() < end:\n    torch.ones(8, 8) @ torch.ones(8, 8)"
    flags = f"--name loop --hook {hook} --max-events 200"
    lines = [line.splitlines()[0] for line in _lines(quick.run(f"%%mtprofile {flags}\n{cell}", **WATCHED)) if line]

    *_, last = [line for line in lines if "reading" not in line]
    assert re.fullmatch(r"loop: stopped recording after \d+(\.\d+)? m?s, as it was full, \d+ s", last)
