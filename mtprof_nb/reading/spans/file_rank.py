"""The rank of the process that a file was recorded in."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

_RANK = re.compile(r"(?<![a-z])rank[ ._=-]*(\d{1,9})(?!\d)", re.IGNORECASE)


def rank_of(document: Mapping[str, Any], path: Path, beside: Callable[[Path], int | None]) -> int:
    """The rank that the file tells, or its name, or another file `beside` it, or a folder; -1 where none does."""
    told = document.get("distributedInfo")
    rank = told.get("rank") if isinstance(told, dict) else None
    if isinstance(rank, int) and 0 <= rank < 2**31:
        return rank
    found = None if _RANK.search(path.name) else beside(path)
    found = rank_in_name(path) if found is None else found
    return -1 if found is None else found


def rank_in_name(path: Path) -> int | None:
    """The number after "rank" in the name of the file, else of the nearest folder that has one."""
    found = (_RANK.findall(part) for part in reversed(path.parts))
    return next((int(numbers[-1]) for numbers in found if numbers), None)
