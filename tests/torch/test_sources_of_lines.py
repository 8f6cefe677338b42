"""Lines show the text that was there when the recording ended."""

import importlib
import sys
from pathlib import Path

import pytest

import mtprof_nb as mtp

torch = pytest.importorskip("torch")

FIRST = "import torch\n\n\ndef work():\n    return torch.ones(4).sum()\n"
SECOND = "import torch\n\n\n# edited\ndef work():\n    return torch.zeros(4).sum()\n"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "edited_module.py").write_text(FIRST)
    yield importlib.import_module("edited_module")
    sys.modules.pop("edited_module")


def sources(prof: mtp.profile, file: str) -> dict[int, str]:
    return {row.line: row.source for row in prof.lines() if row.file == file and row.count}


def recorded(module) -> mtp.profile:
    with mtp.profile(with_stack=True) as prof:
        module.work()
    return prof


def test_a_module_that_was_edited_and_reloaded_shows_its_new_text(module) -> None:
    assert sources(recorded(module), module.__file__) == {5: "return torch.ones(4).sum()"}

    Path(module.__file__).write_text(SECOND)
    importlib.reload(module)

    assert sources(recorded(module), module.__file__) == {6: "return torch.zeros(4).sum()"}


def test_a_recording_keeps_the_text_of_a_file_that_is_edited_afterwards(module) -> None:
    prof = recorded(module)
    Path(module.__file__).write_text(SECOND)

    assert sources(prof, module.__file__) == {5: "return torch.ones(4).sum()"}


def test_only_files_of_the_user_are_kept(module) -> None:
    assert set(recorded(module).trace.sources) == {module.__file__, __file__}
