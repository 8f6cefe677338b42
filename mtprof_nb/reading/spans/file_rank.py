"""The rank of the process that a file was recorded in."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

_RANK = re.compile(r"(?<![a-z])rank[ ._=-]*(\d{1,9})(?!\d)", re.IGNORECASE)


def rank_of(document: Mapping[str, Any], path: Path, beside: Callable[[Path], int | None]) -> int:
    """The rank in the file, or in its name, or in that of another file `beside` it, or of a folder; else -1."""
    group = document.get("distributedInfo")
    rank = group.get("rank") if isinstance(group, dict) else None
    if isinstance(rank, int) and 0 <= rank < 2**31:
        return rank
    named = None if _RANK.search(path.name) else beside(path)
    named = rank_in_name(path) if named is None else named
    return -1 if named is None else named


def rank_in_name(path: Path) -> int | None:
    """The number after "rank" in the name of the file, else of the nearest folder that has one."""
    numbers_of = (_RANK.findall(part) for part in reversed(path.parts))
    return next((int(numbers[-1]) for numbers in numbers_of if numbers), None)
