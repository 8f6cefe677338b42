"""`%load_ext` starts to compile the native recorder where it is missing, for a person alone, and once."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Kernel

LOAD = "%load_ext mtprof_nb"
CHILDREN = 'open(f\'/proc/{__import__("os").getpid()}/task/{__import__("os").getpid()}/children\').read()'
#: A busy machine compiles slowly, at the lowest priority.
PATIENCE_S = 600


def wait_for(folder: Path, suffix: str) -> Path:
    """The file of that suffix, as soon as it exists."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if found := list(folder.glob(f"*{suffix}")):
            return found[0]
        time.sleep(0.1)
    pytest.fail(f"no {suffix} in {sorted(path.name for path in folder.iterdir())}")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which a kernel of this test looks for the recorder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("MTPROF_RECORDER", raising=False)
    return tmp_path / "cache/mtprof_nb/recorder"


def fake_compiler(folder: Path, patch: pytest.MonkeyPatch, body: str) -> None:
    script = folder / "compiler"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o700)
    patch.setenv("CXX", str(script))


@pytest.mark.skipif(
    shutil.which("c++") is None and os.environ.get("CI") != "true", reason="no C++ compiler: install g++"
)
def test_the_build_outlives_the_kernel_that_started_it(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new_kernel: Kernel
) -> None:
    # Waits until the kernel has ended, notes its own priority, and is then the real compiler.
    waits = f'touch "{tmp_path}/it.began"; while [ ! -e "{tmp_path}/go" ]; do sleep 0.1; done'
    body = f'{waits}; nice > "{tmp_path}/nice"; exec c++ "$@"'
    fake_compiler(tmp_path, monkeypatch, body)
    new_kernel.run(f"%env CXX={os.environ['CXX']}")
    ran = new_kernel.run(LOAD, allow_stdin=True)
    children = new_kernel.value(CHILDREN)
    wait_for(tmp_path, ".began")
    again = new_kernel.run("%reload_ext mtprof_nb", allow_stdin=True)
    new_kernel.manager.shutdown_kernel(now=True)

    assert ran.stdout + "".join(map(str, again.messages)) == ""
    assert ran.stderr.startswith("mtprof_nb: compiling a faster recorder for torch ")
    assert (ran.stderr.count("\n"), "MTPROF_RECORDER=off" in ran.stderr) == (1, True)
    assert children == ""
    (tmp_path / "go").touch()
    binary = wait_for(cache, ".so")
    assert int((tmp_path / "nice").read_text()) == min(os.nice(0) + 19, 19)
    assert os.access(binary, os.X_OK)
    wait_for_quiet(cache)


def wait_for_quiet(cache: Path) -> None:
    """Wait until the build has let go of its lock."""
    from mtprof_nb.capture.native.recorder_cache import RecorderFiles

    lock = wait_for(cache, ".lock")
    files = RecorderFiles(cache, lock.name.removesuffix(".lock"))
    end = time.monotonic() + PATIENCE_S
    while files.is_being_built():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_build_that_failed_is_not_started_again(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new_kernel: Kernel
) -> None:
    fake_compiler(tmp_path, monkeypatch, f'echo called >> "{tmp_path}/calls"; echo "error: none today"; exit 1')
    new_kernel.run(f"%env CXX={os.environ['CXX']}")
    first = new_kernel.run(LOAD, allow_stdin=True)
    failure = wait_for(cache, ".failed")
    wait_for_quiet(cache)
    second = new_kernel.run("%reload_ext mtprof_nb", allow_stdin=True)

    assert "compiling a faster recorder" in first.stderr
    assert second.messages == []
    assert "error: none today" in failure.read_text()
    assert (tmp_path / "calls").read_text() == "called\n"


def test_a_program_that_executes_notebooks_and_a_user_who_refuses_get_no_build(cache: Path, new_kernel: Kernel) -> None:
    unattended = new_kernel.run(LOAD, allow_stdin=False)
    refused = new_kernel.run("%env MTPROF_RECORDER=off\n%reload_ext mtprof_nb", allow_stdin=True)

    assert unattended.messages == []
    assert refused.stderr == ""
    assert not cache.exists()
