"""Fixtures of the tests of hooks and of the native recorder's build."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from enter_exit_recording import runtime_state
from recorder_workshop import Workshop

from mtprof_nb.capture.native import recorder_loading


@pytest.fixture
def nothing_stays_patched() -> Iterator[None]:
    """The stand-in is after a test as it was before."""
    before = runtime_state()
    yield
    assert runtime_state() == before


def build_in(cache: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"XDG_CACHE_HOME": str(cache)}
    command = [sys.executable, "-m", "mtprof_nb", "build"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorder, really compiled; two workers of a run share it, and the later one waits for the lock."""
    base = tmp_path_factory.getbasetemp()
    is_shared = "PYTEST_XDIST_WORKER" in os.environ
    ran = build_in((base.parent if is_shared else base) / "compiled")
    if "no C++ compiler" in ran.stderr and os.environ.get("CI") != "true":
        pytest.skip(ran.stderr)
    assert ran.returncode == 0, ran.stderr
    return Path(ran.stdout.strip())


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("MTPROF_RECORDER", raising=False)
    monkeypatch.setattr(recorder_loading, "_loaded", None)
    return Workshop(tmp_path, monkeypatch)
