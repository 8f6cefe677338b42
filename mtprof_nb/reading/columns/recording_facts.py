"""Facts of a whole recording: its process, its window, its flags, and what of the file was not understood."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mtprof_nb.model.schema import Columns
from mtprof_nb.model.trace import OP, PYTHON, Process, Recorded
from mtprof_nb.model.tracks import GROUP
from mtprof_nb.reading.columns.chosen_spans import ChosenSpans
from mtprof_nb.reading.spans.descriptions import base_of, metadata_of
from mtprof_nb.reading.text.event_records import parsed

_MOST_COUNT = 2**62
_RANK = re.compile(r"(?<![a-z])rank[ ._=-]*(\d{1,9})(?!\d)", re.IGNORECASE)
_LABEL_OF_RANK = re.compile(r"(?:TP|DP|PP|EP|rank)[ _-]?(\d{1,6})", re.IGNORECASE)


def recording_facts(file: ChosenSpans, made: Columns) -> Columns:
    """Fields of a `Trace` that are no columns."""
    there = Recorded(
        record_shapes="shape" in made,
        profile_memory=len(file.collector.allocations) > 0,
        with_stack="stack" in made,
        with_modules="module" in made,
    )
    began_ns, ended_ns = _window(file)
    dropped = file.document.get("dropped_events")
    return {
        "recorded": there,
        "processes": _processes(file),
        "began_ns": began_ns,
        "ended_ns": ended_ns,
        "windows": ((began_ns, ended_ns),),
        "trace_id": trace_id if isinstance(trace_id := file.document.get("trace_id"), str) else "",
        "dropped": dropped if isinstance(dropped, int) and 0 < dropped < _MOST_COUNT else 0,
        "is_partial": not bool((file.kind == OP).any()),
    }


def _window(file: ChosenSpans) -> tuple[int, int]:
    """The window in the file, extended to all events of the host and of devices."""
    rows = file.kind != PYTHON
    start_ns, end_ns = file.intervals.start[rows], file.intervals.end[rows]
    began, ended = file.window
    if not ended:
        began, ended = (int(start_ns.min()), int(end_ns.max())) if len(start_ns) else (0, 0)
    base = base_of(file.document)
    return min(began, int(start_ns.min(initial=began))) + base, max(ended, int(end_ns.max(initial=ended))) + base


def _processes(file: ChosenSpans) -> tuple[Process, ...]:
    """The recorded processes with their metadata: of the file, or of several processes, from lines of their own."""
    shared = metadata_of(file.document)
    host = file.document.get("host_name")
    several = len(file.tracks.processes) > 1
    processes = []
    for pid, process in zip(file.tracks.pids, file.tracks.processes, strict=True):
        own = file.described.metadata.get(pid, {})
        rank = _rank_of_process(own, process.label) if several else _rank_in_file(file)
        metadata = tuple({**({} if several and own else shared), **own}.items())
        processes.append(process._replace(rank=rank, host=host if isinstance(host, str) else "", metadata=metadata))
    return tuple(processes)


def _rank_in_file(file: ChosenSpans) -> int:
    """The rank in the file, else in its name, in that of a file beside it, or in that of a folder; else -1."""
    rank = _rank_in_group(file.document.get(GROUP))
    if rank is None and not _RANK.search(file.path.name):
        rank = file.dialect.rank_beside(file.path)
    rank = rank_in_name(file.path) if rank is None else rank
    return -1 if rank is None else rank


def rank_in_name(path: Path) -> int | None:
    """The number after "rank" in the name of the file, else of the nearest folder that has one."""
    numbers_of = (_RANK.findall(part) for part in reversed(path.parts))
    return next((int(numbers[-1]) for numbers in numbers_of if numbers), None)


def _rank_of_process(metadata: dict[str, str], label: str) -> int:
    """The rank in the metadata of a process, else in its label in a merged file, else -1."""
    if (match := _LABEL_OF_RANK.fullmatch(label)) and GROUP not in metadata:
        return int(match[1])
    rank = _rank_in_group(parsed(metadata.get(GROUP, "").encode("utf-8", "replace")))
    return -1 if rank is None else rank


def _rank_in_group(group: Any) -> int | None:
    rank = group.get("rank") if isinstance(group, dict) else None
    return rank if isinstance(rank, int) and 0 <= rank < 2**31 else None
