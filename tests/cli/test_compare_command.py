"""`mtprof compare`: tables in Markdown, and an exit status for limits."""

from __future__ import annotations

from pathlib import Path

import pytest
from traces import event, make_trace

from mtprof_nb.cli.program import main
from mtprof_nb.export import recording_file
from mtprof_nb.model.trace import Trace


def _run(length: int, adds: int = 1, steps: int = 4, began_ns: int = 0) -> Trace:
    """Steps of one product of this length, and of some sums."""
    rows, now = [], began_ns
    for step in range(steps):
        for name, took in [("aten::mm", length), *[("aten::add", 10)] * adds]:
            rows.append(event(name, now, now + took, step=step))
            now += took
    return make_trace(rows)


def _saved(folder: Path, name: str, trace: Trace) -> str:
    folder.mkdir(exist_ok=True)
    recording_file.write(trace, folder / f"{name}.mtp")
    return str(folder / f"{name}.mtp")


def test_the_tables_are_markdown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = _saved(tmp_path, "before", _run(1000)), _saved(tmp_path, "after", _run(1000, adds=2))

    assert main(["compare", before, after]) == 0

    out = capsys.readouterr().out
    assert "against" in out.splitlines()[0]
    assert "| op aten::add | 4 | 8 | called more often |" in out


def test_the_comparison_is_written_as_a_page_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = _saved(tmp_path, "before", _run(1000)), _saved(tmp_path, "after", _run(1000, adds=2))

    assert main(["compare", before, after, "-H", str(tmp_path / "page.html")]) == 0

    assert "after.mtp against" in (tmp_path / "page.html").read_text()
    assert "| op aten::add |" in capsys.readouterr().out


def test_one_run_of_each_does_not_fail_for_its_time_alone(tmp_path: Path) -> None:
    before, after = _saved(tmp_path, "before", _run(1000)), _saved(tmp_path, "after", _run(1500))

    assert main(["compare", before, after, "--fail-over", "10%"]) == 0


def test_a_difference_beyond_all_noise_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = _saved(tmp_path, "before", _run(1_000)), _saved(tmp_path, "after", _run(50_000))

    assert main(["compare", before, after, "--fail-over", "10%"]) == 3
    assert "time grew by 4851.5 %, which is over the limit of 10 %" in capsys.readouterr().err


def test_a_faster_program_does_not_fail(tmp_path: Path) -> None:
    before, after = _saved(tmp_path, "before", _run(50_000)), _saved(tmp_path, "after", _run(1_000))

    assert main(["compare", before, after, "--fail-over", "10%"]) == 0


@pytest.mark.parametrize(("limit", "status"), [("ops=60%", 0), ("ops=49%", 3), ("time=1%", 0)])
def test_figures_have_limits_too(tmp_path: Path, limit: str, status: int) -> None:
    before, after = _saved(tmp_path, "before", _run(1000)), _saved(tmp_path, "after", _run(1000, adds=2))

    assert main(["compare", before, after, "--fail-over", "5%", "--fail-over", limit]) == status


def test_a_limit_of_a_figure_that_was_not_recorded_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = _saved(tmp_path, "run", _run(1000))

    assert main(["compare", run, run, "--fail-over", "peak=0%"]) == 1
    assert "the limit of peak cannot be checked, because a recording lacks it: record" in capsys.readouterr().err


@pytest.mark.parametrize(("nbytes", "told"), [((0, 64), "from nothing"), ((64, 96), "by 50.0 %")])
def test_memory_that_grew_is_over_its_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], nbytes: tuple[int, int], told: str
) -> None:
    made = [
        make_trace(
            [event("aten::empty", 0, 10, memory=(0, size))],
            [{"time_ns": 5, "nbytes": size, "address": 1, "event": 0}] if size else [],
        )
        for size in nbytes
    ]
    before, after = (_saved(tmp_path, name, trace) for name, trace in zip("ab", made, strict=True))

    assert main(["compare", before, after, "--fail-over", "allocated=10%"]) == 3
    assert f"allocated grew {told}, which is over the limit of 10 %" in capsys.readouterr().err


def test_files_of_a_folder_are_runs_if_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(4):
        _saved(tmp_path / "before", str(number), _run(1000 + number, began_ns=2_000_000 * number))
        _saved(tmp_path / "after", str(number), _run(1200 + number, began_ns=2_000_000 * number + 1_000_000))

    arguments = ["compare", str(tmp_path / "before"), str(tmp_path / "after"), "--runs"]

    assert main([*arguments, "--fail-over", "10%"]) == 3
    assert main([*arguments, "--fail-over", "25%"]) == 0
    assert "4 and 4 runs" in capsys.readouterr().out


def test_a_number_of_rows_that_means_nothing_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["compare", "a.mtp", "b.mtp", "--limit", "0"])

    assert "give a whole number from 1 up" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["10", "ten%", "speed=10%", "-3%", "nan%"])
def test_a_limit_that_means_nothing_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["compare", "a.mtp", "b.mtp", f"--fail-over={text}"])

    assert ended.value.code == 2
    assert "--fail-over" in capsys.readouterr().err


def test_a_file_that_is_missing_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = _saved(tmp_path, "before", _run(1000))

    assert main(["compare", before, str(tmp_path / "nowhere.mtp")]) == 1
    assert "nowhere.mtp" in capsys.readouterr().err
