"""The memory that a process can still take, by hand-made files of a system."""

import resource
from pathlib import Path

import pytest

from mtprof_nb.capture.machine.available_memory import available_bytes

MIB = 1 << 20


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with 1000 MiB available, and a process that takes 100 MiB of address space without a limit."""
    monkeypatch.setattr(resource, "getrlimit", lambda _limit: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    write(tmp_path / "proc/meminfo", f"MemTotal: 9 kB\nMemFree: 5 kB\nMemAvailable: {1000 * 1024} kB\n")
    write(tmp_path / "proc/self/status", f"Name: python\nVmSize: {100 * 1024} kB\nVmData: {40 * 1024} kB\n")
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def group(folder: Path, limit: str, use: int, cache: int, *, version: int = 2) -> None:
    names = ("memory.max", "memory.current", "inactive_file")
    if version == 1:
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    write(folder / names[0], f"{limit}\n")
    write(folder / names[1], f"{use}\n")
    write(folder / "memory.stat", f"anon 5\n{names[2]} {cache}\n")


def test_without_limits_it_is_what_the_machine_has(root: Path) -> None:
    assert available_bytes(root) == 1000 * MIB


def test_a_container_leaves_its_limit_less_its_use_and_the_cache_comes_back(root: Path) -> None:
    write(root / "proc/self/cgroup", "0::/user/notebook\n")
    group(root / "sys/fs/cgroup/user/notebook", "max", 10 * MIB, 0)
    group(root / "sys/fs/cgroup/user", str(500 * MIB), 300 * MIB, 30 * MIB)
    assert available_bytes(root) == 230 * MIB


def test_files_that_were_read_twice_leave_their_memory_too(root: Path) -> None:
    write(root / "proc/self/cgroup", "0::/box\n")
    group(root / "sys/fs/cgroup/box", str(500 * MIB), 300 * MIB, 30 * MIB)
    write(root / "sys/fs/cgroup/box/memory.stat", f"inactive_file {30 * MIB}\nactive_file {70 * MIB}\n")
    assert available_bytes(root) == 300 * MIB


def test_a_container_of_the_first_version_counts_as_well(root: Path) -> None:
    write(root / "proc/self/cgroup", "7:cpu,cpuacct:/\n4:memory:/box\n0::/\n")
    group(root / "sys/fs/cgroup/memory/box", str(500 * MIB), 300 * MIB, 0, version=1)
    assert available_bytes(root) == 200 * MIB


@pytest.mark.parametrize(("limited", "left"), [("RLIMIT_AS", 150), ("RLIMIT_DATA", 210)])
def test_a_limit_of_the_process_leaves_what_it_has_not_taken(
    root: Path, monkeypatch: pytest.MonkeyPatch, limited: str, left: int
) -> None:
    def limits(limit: int) -> tuple[int, int]:
        return (250 * MIB, -1) if limit == getattr(resource, limited) else (resource.RLIM_INFINITY, -1)

    monkeypatch.setattr(resource, "getrlimit", limits)
    assert available_bytes(root) == left * MIB


def test_a_process_whose_name_is_cut_within_a_character_is_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status = root / "proc/self/status"
    status.write_bytes("Name: ü".encode()[:-1] + b"\n" + status.read_bytes())
    monkeypatch.setattr(resource, "getrlimit", lambda _limit: (250 * MIB, -1))
    assert available_bytes(root) == 150 * MIB


def test_where_more_is_taken_than_a_limit_allows_nothing_is_left(root: Path) -> None:
    write(root / "proc/self/cgroup", "0::/\n")
    group(root / "sys/fs/cgroup", str(100 * MIB), 300 * MIB, 0)
    assert available_bytes(root) == 0


def test_a_system_that_tells_nothing_is_not_guessed_at(root: Path) -> None:
    (root / "proc/meminfo").unlink()
    assert available_bytes(root) is None


def test_of_this_machine_it_is_known() -> None:
    assert (available_bytes() or 0) > 0
