"""`mtprof show` and `mtprof convert`: the tables and the formats of recordings that were saved."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from traces import event, make_trace

import mtprof_nb as mtp
from mtprof_nb.cli.program import main
from mtprof_nb.export import by_suffix, recording_file


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    times = {"aten::mm": [(0, 2_000_000)], "aten::add": [(2_000_000, 3_000_000), (3_500_000, 4_000_000)]}
    events = [event(name, start, end) for name, spans in times.items() for start, end in spans]
    trace = make_trace(events, label="my run")
    recording_file.write(trace, tmp_path / "run.mtp")
    return tmp_path / "run.mtp"


def rows(text: str) -> list[list[str]]:
    """Name and number of calls of each operator in a printed table."""
    return [line.split()[:2] for line in text.splitlines() if line.startswith("aten::")]


def test_the_tables_of_a_recording_go_to_stdout(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(saved)]) == 0
    shown = capsys.readouterr()

    assert shown.out.startswith("my run\n")
    assert "wall 4.00 ms, in ops 3.50 ms, ops 3" in shown.out
    assert rows(shown.out) == [["aten::mm", "1"], ["aten::add", "2"]]
    assert shown.err == ""


def test_the_table_is_sorted_and_limited_as_in_a_cell(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["show", "--sort", "calls", "--limit", "1", str(saved)])

    assert rows(capsys.readouterr().out) == [["aten::add", "2"]]


def test_a_reader_that_stops_reading_is_no_error(saved: Path) -> None:
    # `false` ends without reading: everything is written into a closed pipe.
    program = f'"{sys.executable}" -m mtprof_nb show "{saved}" | false; echo ${{PIPESTATUS[0]}}'
    ran = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)

    assert (ran.stdout, ran.stderr) == ("0\n", "")


@pytest.mark.parametrize("command", ["show {0}", "compare {0} {0}", "report {0} -o {1}/é.html"])
def test_characters_that_a_terminal_cannot_write_are_escaped(command: str, saved: Path) -> None:
    program = [sys.executable, "-m", "mtprof_nb", *command.format(saved, saved.parent).split(" ")]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii:strict"}
    ran = subprocess.run(program, capture_output=True, text=True, env=environment, check=False)

    assert (ran.returncode, ran.stderr) == (0, "")
    assert "\\x" in ran.stdout or "\\u" in ran.stdout


def test_a_recording_shown_by_a_program_escapes_what_its_output_cannot_write(saved: Path) -> None:
    program = f"import mtprof_nb; mtprof_nb.load({str(saved)!r}).show(name='é')"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii:strict"}
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)

    assert (ran.returncode, ran.stderr, ran.stdout[:4]) == (0, "", "\\xe9")


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])

    assert capsys.readouterr().out == f"mtprof_nb {mtp.__version__}\n"


@pytest.mark.parametrize("suffix", by_suffix.SUFFIXES)
def test_a_recording_is_converted_by_suffix(saved: Path, suffix: str) -> None:
    target = saved.with_name(f"out{suffix}")
    assert main(["convert", str(saved), str(target)]) == 0
    converted = target.read_bytes()
    recording = mtp.load(saved)
    (recording.save if suffix == ".mtp" else recording.export_chrome_trace)(target)

    assert converted == target.read_bytes()


def test_a_damaged_trace_is_shown_in_part_if_asked_for(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damaged = saved.with_name("damaged.json")
    mtp.load(saved).export_chrome_trace(damaged)
    text = damaged.read_text()
    damaged.write_text(text[: text.rindex('"aten::add"')])

    assert main(["show", str(damaged)]) == 1
    assert "damaged" in capsys.readouterr().err
    assert main(["show", "--partial", str(damaged)]) == 0
    assert rows(capsys.readouterr().out) == [["aten::mm", "1"], ["aten::add", "1"]]


def test_many_files_are_the_processes_of_one_recording(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    traces = [str(saved.with_name(f"rank{rank}.json")) for rank in range(2)]
    for trace in traces:
        mtp.load(saved).export_chrome_trace(trace)

    assert main(["convert", *traces, str(saved.with_name("both.mtp"))]) == 0
    assert len(mtp.load(saved.with_name("both.mtp")).trace.processes) == 2
    assert main(["show", *traces]) == 0
    assert rows(capsys.readouterr().out) == [["aten::mm", "2"], ["aten::add", "4"]]


@pytest.mark.parametrize("command", [["show", "none.mtp"], ["convert", "none.mtp", "out.json"]])
def test_a_recording_that_cannot_be_loaded_is_one_line_and_status_1(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    assert main(command) == 1
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert f"{command[0]}: there is no file 'none.mtp'" in printed.err


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["convert", "run.mtp", "out.xyz"], "'out.xyz' has no known suffix: end it in .mtp, .json, .json.gz"),
        (["convert", "run.mtp", "out.html"], "-H writes a page, and mtprof report that of a recording"),
        (["convert", "run.mtp"], "the following arguments are required: OUT"),
        (["show"], "the following arguments are required: FILE"),
        (["show", "--sort", "colour", "run.mtp"], "no column 'colour'"),
        (["shows"], "invalid choice: 'shows'"),
        ([], "the following arguments are required: COMMAND"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(
    command: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(command)
    printed = capsys.readouterr()

    assert ended.value.code == 2
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert message in printed.err


def test_the_console_script_is_the_same_program() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    module, _, function = project["scripts"]["mtprof"].partition(":")

    assert getattr(import_module(module), function) is main
