"""The rank of the process that a file was recorded in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_RANK = re.compile(r"(?<![a-z])rank[ ._=-]*(\d{1,9})(?!\d)", re.IGNORECASE)
#: Ascend's profiler writes the rank into the name of a file in the folder above that of the trace.
_ASCEND_OUTPUT, _ASCEND_INFO = "ASCEND_PROFILER_OUTPUT", re.compile(r"profiler_info_(\d{1,9})\.json")


def rank_of(document: Mapping[str, Any], path: Path, *, is_ascend: bool = False) -> int:
    """The rank that the file tells, or another file of Ascend's beside it, or the names; -1 where none does."""
    told = document.get("distributedInfo")
    rank = told.get("rank") if isinstance(told, dict) else None
    if isinstance(rank, int) and 0 <= rank < 2**31:
        return rank
    found = _rank_beside(path) if is_ascend and not _RANK.search(path.name) else None
    found = rank_in_name(path) if found is None else found
    return -1 if found is None else found


def rank_in_name(path: Path) -> int | None:
    """The number after "rank" in the name of the file, else of the nearest folder that has one."""
    found = (_RANK.findall(part) for part in reversed(path.parts))
    return next((int(numbers[-1]) for numbers in found if numbers), None)


def _rank_beside(path: Path) -> int | None:
    """The rank in the name of the one `profiler_info_N.json` that belongs to a `trace_view.json`."""
    folder = path.absolute().parent
    folders = (folder, folder.parent) if folder.name == _ASCEND_OUTPUT else (folder,)
    for one in folders:
        ranks = {int(match[1]) for file in one.iterdir() if (match := _ASCEND_INFO.fullmatch(file.name))}
        if ranks:
            return ranks.pop() if len(ranks) == 1 else None
    return None
