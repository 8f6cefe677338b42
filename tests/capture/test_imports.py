"""The moment a module has been imported is noticed, and nothing else about importing changes."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mtprof_nb.capture.imports import ImportWatcher


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package `watched_one`, a module `watched_two`, one that fails, on the path of this test alone."""
    (tmp_path / "watched_one").mkdir()
    (tmp_path / "watched_one" / "__init__.py").write_text("from watched_one import inner\nDONE = True\n")
    (tmp_path / "watched_one" / "inner.py").write_text("")
    (tmp_path / "watched_two.py").write_text("import watched_one\n")
    (tmp_path / "watched_broken.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in [name for name in sys.modules if name.startswith("watched_")]:
        del sys.modules[name]


@pytest.fixture
def seen() -> Iterator[list[str]]:
    names: list[str] = []
    watcher = ImportWatcher(["watched_one", "watched_broken"], names.append)
    watcher.install()
    yield names
    watcher.remove()
    assert watcher not in sys.meta_path


def test_a_watched_module_is_reported_when_it_is_complete() -> None:
    was_complete: list[bool] = []
    watcher = ImportWatcher(["watched_one"], lambda name: was_complete.append(sys.modules[name].DONE))
    watcher.install()
    try:
        importlib.import_module("watched_one")
    finally:
        watcher.remove()

    assert was_complete == [True]


def test_it_is_noticed_when_another_module_imports_it(seen: list[str]) -> None:
    importlib.import_module("watched_two")

    assert seen == ["watched_one"]


def test_a_module_that_is_there_already_is_not_reported_again(seen: list[str]) -> None:
    importlib.import_module("watched_one")
    importlib.import_module("watched_one")

    assert seen == ["watched_one"]


def test_a_failed_import_fails_as_ever_and_is_not_reported(seen: list[str]) -> None:
    with pytest.raises(ZeroDivisionError):
        importlib.import_module("watched_broken")

    assert seen == []


def test_to_look_for_a_module_is_not_to_import_it(seen: list[str]) -> None:
    assert importlib.util.find_spec("watched_one") is not None
    assert seen == []


def test_the_module_is_the_one_it_is_without_being_watched(seen: list[str]) -> None:
    watched = importlib.import_module("watched_one")
    plain = importlib.import_module("watched_two")

    assert type(watched.__spec__.loader) is type(plain.__spec__.loader)
    assert vars(watched.__spec__.loader).keys() == vars(plain.__spec__.loader).keys()
    assert watched.__loader__ is watched.__spec__.loader


def test_a_module_that_does_not_exist_is_not_found(seen: list[str]) -> None:
    watcher = ImportWatcher(["watched_nowhere"], seen.append)
    watcher.install()
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("watched_nowhere")
    watcher.remove()

    assert seen == []


def test_to_remove_twice_is_to_remove_once() -> None:
    before = list(sys.meta_path)
    watcher = ImportWatcher(["watched_one"], print)
    watcher.install()
    watcher.remove()
    watcher.remove()

    assert sys.meta_path == before
