"""A cache folder for a test, and stand-ins for the C++ compiler."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mtprof_nb.capture.native.recorder_cache import RecorderFiles
from mtprof_nb.capture.native.recorder_key import key_of_installed_torch

if TYPE_CHECKING:
    import pytest

#: Finds the path after `-o`.
TARGET = 'while [ "$1" != -o ]; do shift; done; target=$2'


@dataclass(frozen=True)
class Workshop:
    """A cache folder of the test's own, and the compiler that builds in it."""

    root: Path
    patch: pytest.MonkeyPatch

    @property
    def folder(self) -> Path:
        return self.root / "cache/mtprof_nb/recorder"

    @property
    def files(self) -> RecorderFiles:
        key = key_of_installed_torch()
        assert key is not None
        return RecorderFiles(self.folder, key.name)

    @property
    def calls(self) -> int:
        """How often the compiler was called."""
        log = self.root / "calls"
        return len(log.read_text().splitlines()) if log.exists() else 0

    def compiler(self, body: str) -> None:
        """Let a shell script be the compiler; it finds the path to write in `$target`."""
        script = self.root / "compiler"
        script.write_text(f"#!/bin/sh\n{TARGET}\necho called >> {self.root}/calls\n{body}\n")
        script.chmod(0o700)
        self.patch.setenv("CXX", str(script))

    def copying(self, binary: Path) -> None:
        """Let the compiler be quick: it copies a recorder that was compiled before."""
        self.compiler(f'cp "{binary}" "$target"')
