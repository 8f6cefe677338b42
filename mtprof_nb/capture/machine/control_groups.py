"""The control groups of this process, by which Linux limits what a container may use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def groups_with(root: Path, controller: str, folder: str) -> Iterator[Path]:
    """The folder of each group of this process that has `controller`, and of each group around it.

    `controller` is "" for the groups of version 2, which are mounted without a `folder` of their own.
    """
    for line in file_text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controller in controllers.split(","):
            mount = root / "sys/fs/cgroup" / folder
            group = mount / path.strip("/")
            yield from (place for place in (group, *group.parents) if place == mount or mount in place.parents)


def file_text(path: Path) -> str:
    """The text of a file, "" if it cannot be read."""
    try:
        return path.read_text(errors="replace")  # the name of a process may be cut within a character
    except OSError:
        return ""
