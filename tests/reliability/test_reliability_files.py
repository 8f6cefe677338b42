"""Exports to a full disk, to what is no file, or killed half way: the old file is whole, and the error helps."""

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from synthetic import training_run

import mtprof_nb as mtp
from mtprof_nb.recording import Recording, Results

TESTS = Path(__file__).parent.parent
OLD = b"the old file"


EXPORTS: dict[str, Callable[[Results, Any], None]] = {
    "run.mtp": lambda prof, path: prof.save(path),
    "trace.json": lambda prof, path: prof.export_chrome_trace(path),
    "trace.json.gz": lambda prof, path: prof.export_chrome_trace(path),
    "stacks.txt": lambda prof, path: prof.export_stacks(path),
    "memory.json": lambda prof, path: prof.export_memory_timeline(path),
    "memory.json.gz": lambda prof, path: prof.export_memory_timeline(path),
    "memory.raw.json.gz": lambda prof, path: prof.export_memory_timeline(path),
    "memory.html": lambda prof, path: prof.export_memory_timeline(path),
    "page.html": lambda prof, path: prof.export_html(path),
    "averages.json": lambda prof, path: prof.key_averages().export_chrome_trace(path),
    "averages.txt": lambda prof, path: prof.key_averages().export_stacks(path, "self_cpu_time_total"),
}


@pytest.fixture(scope="module")
def finished() -> Recording:
    return Recording(training_run(20_000))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 16 kB, where this user may make one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(folder)]
    if not sys.platform.startswith("linux") or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a file system of the test's own needs Linux and root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def listed(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("name", [name for name in EXPORTS if not name.startswith("averages")])
def test_a_full_disk_keeps_the_old_file_and_says_so(name: str, finished: Recording, small_disk: Path) -> None:
    target = small_disk / name
    target.write_bytes(OLD)
    filler = small_disk / "filler"
    with pytest.raises(OSError, match="No space"):
        filler.write_bytes(b"x" * (1 << 20))
    with pytest.raises(mtp.ExportError, match="the disk is full: free some space, or choose a path on another disk"):
        EXPORTS[name](finished, target)
    assert target.read_bytes() == OLD
    assert listed(small_disk) == sorted(["filler", name])


@pytest.mark.parametrize("name", EXPORTS)
def test_every_export_replaces_its_file_as_a_whole(
    name: str, finished: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / name
    target.write_bytes(OLD)

    def refuse(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(os, "fsync", refuse)
        with pytest.raises(mtp.ExportError, match="the disk is full"):
            EXPORTS[name](finished, target)
    assert (target.read_bytes(), listed(tmp_path)) == (OLD, [name])
    EXPORTS[name](finished, target)
    assert listed(tmp_path) == [name]
    assert target.read_bytes() != OLD


@pytest.mark.parametrize("name", EXPORTS)
def test_a_folder_and_a_missing_folder_are_told_with_what_to_do(name: str, finished: Recording, tmp_path: Path) -> None:
    folder = tmp_path / name
    folder.mkdir()
    with pytest.raises(mtp.ExportError, match="it is a folder: name a file in it"):
        EXPORTS[name](finished, folder)
    with pytest.raises(mtp.ExportError, match="its folder does not exist: create it first"):
        EXPORTS[name](finished, tmp_path / "missing" / name)
    assert listed(tmp_path) == [name]


KILLED = """
import sys
sys.path.insert(0, sys.argv[2])
from synthetic import training_run
from mtprof_nb.export import chrome_trace
trace = training_run(20_000)
chrome_trace.write(trace, sys.argv[1])
print("ready", flush=True)
while True:
    chrome_trace.write(trace, sys.argv[1])
"""


@pytest.mark.soak
@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_an_export_that_is_killed_leaves_a_whole_file_and_at_most_one_temporary(
    finished: Recording, tmp_path: Path, rounds: Callable[[int, int], int]
) -> None:
    target, lot = tmp_path / "trace.json", random.Random(8)
    left_over = 0
    for _ in range(rounds(5, 50)):
        child = subprocess.Popen([sys.executable, "-c", KILLED, target, TESTS], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(lot.uniform(0, 0.3))
        child.kill()
        child.communicate()
        assert child.returncode == -signal.SIGKILL
        exported = json.loads(target.read_text())["traceEvents"]
        recorded = [event for event in exported if event["ph"] == "X" and event["cat"] != "Trace"]
        assert len(recorded) == len(training_run(20_000))
        beside = [name for name in listed(tmp_path) if name != target.name]
        assert len(beside) <= 1
        left_over += len(beside)
    print(f"{rounds(5, 50)} kills, {left_over} of them left a temporary, each removed by the next export")
    finished.export_chrome_trace(target)
    assert listed(tmp_path) == ["trace.json"]
