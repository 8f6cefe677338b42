"""Fixtures of the tests on PyTorch."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from marked_cells import Shell, new_shell
from timed_functions import MODULE


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    """A shell with the extension, torch and nn, for the cells of one file."""
    with new_shell() as made:
        made.ip.run_cell("%load_ext mtprof_nb\nimport torch\nfrom torch import nn")
        yield made
        made.ip.run_cell("%unload_ext mtprof_nb")


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Makes modules of the user, each in a file of its own."""
    monkeypatch.syspath_prepend(tmp_path)
    made: list[str] = []

    def make(name: str) -> ModuleType:
        (tmp_path / f"work_{name}.py").write_text(MODULE.format(name=name))
        made.append(f"work_{name}")
        sys.modules.pop(made[-1], None)
        return __import__(f"work_{name}")

    yield make
    for name in made:
        sys.modules.pop(name, None)
