"""`mtprof report`: the page of a saved recording."""

from pathlib import Path

import pytest
from synthetic import training_run

from mtprof_nb.cli.program import main
from mtprof_nb.recording import Recording


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    Recording(training_run(300)).save(tmp_path / "run.mtp")
    return tmp_path / "run.mtp"


def test_the_page_is_written_where_it_is_asked_for(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = saved.parent / "page.html"

    assert main(["report", str(saved), "-o", str(page), "--name", "mine"]) == 0
    assert capsys.readouterr().out == f"{page}\n"
    assert "<title>mine</title>" in page.read_text()


def test_without_a_path_the_page_has_the_name_of_the_recording(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(saved.parent)

    assert main(["report", "run.mtp"]) == 0
    assert "aten::addmm" in (saved.parent / "run.html").read_text()


def test_a_file_that_is_no_recording_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other.mtp").write_text("hello")

    assert main(["report", str(tmp_path / "other.mtp"), "-o", str(tmp_path / "page.html")]) == 1
    error = capsys.readouterr().err
    assert f"report: {tmp_path / 'other.mtp'}: " in error
    assert error.count("\n") == 1
    assert not (tmp_path / "page.html").exists()
