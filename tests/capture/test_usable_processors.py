"""The processors that a process may use, by hand-made files of a system."""

import os
from pathlib import Path

import pytest

from mtprof_nb.capture.machine.thread_counts import usable_cores, usable_processors


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose process may run on eight processors of four cores."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    for number in range(8):
        write(tmp_path / f"sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list", f"{number % 4},9\n")
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_two_processors_of_a_core_count_once_as_a_core(root: Path) -> None:
    assert (usable_processors(root), usable_cores(root)) == (8, 4)


def test_a_process_may_run_on_some_processors_alone(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 5})
    assert (usable_processors(root), usable_cores(root)) == (2, 1)


def test_a_container_may_use_a_share_of_the_processors(root: Path) -> None:
    write(root / "proc/self/cgroup", "0::/box\n")
    write(root / "sys/fs/cgroup/box/cpu.max", "250000 100000\n")
    assert (usable_processors(root), usable_cores(root)) == (3, 3)
    write(root / "sys/fs/cgroup/box/cpu.max", "max 100000\n")
    assert (usable_processors(root), usable_cores(root)) == (8, 4)
    write(root / "sys/fs/cgroup/cpu.max", "100000 100000\n")
    assert (usable_processors(root), usable_cores(root)) == (1, 1)


def test_a_container_of_the_first_version_counts_as_well(root: Path) -> None:
    write(root / "proc/self/cgroup", "7:cpu,cpuacct:/box\n0::/\n")
    write(root / "sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "200000\n")
    write(root / "sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n")
    assert usable_processors(root) == 2
    write(root / "sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "-1\n")
    assert usable_processors(root) == 8


def test_a_system_without_such_files_has_a_core_for_each_processor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    assert (usable_processors(tmp_path), usable_cores(tmp_path)) == (3, 3)
