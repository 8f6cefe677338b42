"""A cache folder for a test, and stand-ins for the C++ compiler."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mtprof_nb.capture.native.recorder_cache import RecorderFiles, digest_of
from mtprof_nb.capture.native.recorder_key import key_of_installed_torch

if TYPE_CHECKING:
    import pytest

DAY_S = 24 * 3600
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

    def put(self, binary: Path) -> None:
        """Place a recorder that was compiled before, as a build does."""
        self.folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        shutil.copy(binary, self.files.binary)
        self.files.digest.write_text(digest_of(self.files.binary))

    def copying(self, binary: Path) -> None:
        """Let the compiler be quick: it copies a recorder that was compiled before."""
        self.compiler(f'cp "{binary}" "$target"')


def entries(workshop: Workshop) -> list[str]:
    """The suffixes of what stands in the folder, all of one name."""
    return sorted(path.name.removeprefix(workshop.files.name) for path in workshop.folder.iterdir())
