"""How many threads torch computes with, and how many processors this process may use."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from math import ceil
from pathlib import Path
from typing import Any

from mtprof_nb.capture.machine.control_groups import file_text, groups_with

#: Variables of the environment that set the number of threads as torch is imported.
_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


def thread_counts() -> dict[str, Any] | None:
    """The numbers of threads and processors, how many processors are busy, and the variable that sets the threads.

    None without torch, and where the system does not report them: no recording fails for want of these numbers.
    """
    with suppress(Exception):
        return {
            "threads": _torch().get_num_threads(),
            "processors": usable_processors(),
            "cores": usable_cores(),
            "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else -1,
            "set_by": next((name for name in _VARIABLES if os.environ.get(name)), ""),
        }
    return None


def counts_text(at_start: dict[str, Any] | None) -> str | None:
    """JSON of the numbers; None if they are not known, or the program has changed the number of threads."""
    with suppress(Exception):
        if at_start is not None and at_start["threads"] == _torch().get_num_threads():
            return json.dumps(at_start)
    return None


def _torch() -> Any:
    """The module where it is imported; it may still lack everything, while it is being imported."""
    return sys.modules["torch"]


def usable_processors(root: Path = Path("/")) -> int:
    """The number of logical processors; a limit of the container counts as so many whole ones."""
    limits = [ceil(share) for share in _shares(root) if share > 0]
    return max(min([len(_allowed()), *limits]), 1)


def usable_cores(root: Path = Path("/")) -> int:
    """The number of cores: two processors of one core, as hyperthreading has them, count once."""
    return min(_cores(frozenset(_allowed()), root), usable_processors(root))


@lru_cache(maxsize=4)
def _cores(processors: frozenset[int], root: Path) -> int:
    """The number of cores that have `processors`: of a large machine, a hundred small files are read."""
    folder = root / "sys/devices/system/cpu"
    return len(
        {file_text(folder / f"cpu{number}/topology/thread_siblings_list") or str(number) for number in processors}
    )


def _allowed() -> set[int]:
    """The processors that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def _shares(root: Path) -> Iterator[float]:
    """The limit of each control group in processors."""
    parts = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
    texts = [file_text(group / "cpu.max") for group in groups_with(root, "", "")]
    texts += [" ".join(file_text(group / part) for part in parts) for group in groups_with(root, "cpu", "cpu")]
    for limit, period in (pair for text in texts if len(pair := text.split()) == 2):
        if limit.isdecimal() and period.isdecimal() and int(period):
            yield int(limit) / int(period)
