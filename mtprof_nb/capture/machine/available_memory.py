"""How many bytes this process can take before the system, a container or its own limit refuses; giving some back."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from mtprof_nb.capture.machine.control_groups import file_text, groups_with

#: For each version of control groups: where it is mounted, the files of limit and use, and how lines of cache begin.
_CGROUPS = {
    "": ("", "memory.max", "memory.current", ""),
    "memory": ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
}
#: Files that the system keeps in memory as long as nobody needs it.
_CACHES = ("inactive_file", "active_file")

#: In the first version, a limit above this number means that there is none.
_NO_LIMIT = 1 << 60

#: A recording of fewer events leaves less than 10 MB behind.
_MANY_EVENTS = 50_000


def available_bytes(root: Path = Path("/")) -> int | None:
    """The least that machine, container and limits leave, without swap; None where none of them is known."""
    left = [*bytes_before_a_kill(root), *_in_own_limits(root)]
    return max(min(left), 0) if left else None


def bytes_before_a_kill(root: Path = Path("/")) -> list[int]:
    """The bytes that machine and container each leave: the system ends a process that takes more."""
    return [*_in_machine(root), *_in_cgroups(root)]


def resident_bytes(root: Path = Path("/")) -> int:
    """The memory that this process holds; 0 where the system does not report it."""
    return _fields(root / "proc/self/status").get("VmRSS:", 0) * 1024


def give_back(events: int) -> None:
    """Return memory to the system that the C library kept, after a recording of so many events was read or freed.

    The GNU C library keeps freed blocks of up to 32 MB, and a column of a million events is smaller.
    """
    if events < _MANY_EVENTS or not sys.platform.startswith("linux"):
        return
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _in_machine(root: Path) -> Iterator[int]:
    kibibytes = _fields(root / "proc/meminfo").get("MemAvailable:")
    if kibibytes is not None:
        yield kibibytes * 1024


def _in_cgroups(root: Path) -> Iterator[int]:
    """The bytes that each group of this process, and each group around it, leaves."""
    for controller, (folder, *files) in _CGROUPS.items():
        for group in groups_with(root, controller, folder):
            yield from _in_group(group, *files)


def _in_group(group: Path, limit: str, use: str, cache: str) -> Iterator[int]:
    limit = file_text(group / limit).strip()
    if not limit.isdecimal() or int(limit) > _NO_LIMIT:
        return  # to read the others takes milliseconds
    if (use := file_text(group / use).strip()).isdecimal():
        counts = _fields(group / "memory.stat")
        yield int(limit) - int(use) + sum(counts.get(f"{cache}{name}", 0) for name in _CACHES)


def _in_own_limits(root: Path) -> Iterator[int]:
    if sys.platform == "win32":
        return
    import resource

    for limit, field in ((resource.RLIMIT_AS, "VmSize:"), (resource.RLIMIT_DATA, "VmData:")):
        soft, _ = resource.getrlimit(limit)
        used = _fields(root / "proc/self/status") if soft != resource.RLIM_INFINITY else {}
        if field in used:
            yield soft - used[field] * 1024


def _fields(path: Path) -> dict[str, int]:
    """The numbers of a file with a name and a whole number on each line, without their units."""
    rows = (line.split() for line in file_text(path).splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdecimal()}
