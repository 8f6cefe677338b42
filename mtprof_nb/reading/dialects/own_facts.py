"""Facts that the exports of this package carry beyond those of Kineto."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mtprof_nb.model.schema import Columns, Int32
from mtprof_nb.model.trace import PHASES, SourceLine
from mtprof_nb.reading.columns.chosen_spans import ChosenSpans

_LONGEST_LINE = 9
#: A position in the table of device types has 8 bits.
_MOST_DEVICES = 100


def columns(file: ChosenSpans) -> Columns:
    """Phases, steps, devices, overloads, lines, modules, FLOPs and memory, as far as the file has them."""
    made: Columns = {}
    if "phase" in file.spans:
        made["phase"] = _texts(file, "phase", lambda text: PHASES.index(text) if text in PHASES else -1)
    if "step" in file.spans:
        made["step"] = np.maximum(file.spans["step"], 0)
    if "flops" in file.spans:
        made["flops"] = file.spans["flops"]
    if "memory_before" in file.spans and "memory_after" in file.spans:
        made |= {"memory_before": file.spans["memory_before"], "memory_after": file.spans["memory_after"]}
    for fact, table, read in _TABLES:
        entries: dict[Any, int] = {}
        found = _texts(file, fact, partial(_position, entries, read))
        if entries:
            made |= {fact: found, table: tuple(entries)}
    return made


def device_types(file: ChosenSpans) -> tuple[Int32, tuple[str, ...]] | None:
    """The device type of each event, and the table of types; None where the file does not tell."""
    if "device_type" not in file.spans:
        return None
    entries: dict[Any, int] = {"CPU": 0}
    found = _texts(file, "device_type", partial(_position, entries, _same))
    return np.where((found >= 0) & (found < _MOST_DEVICES), found, 0), tuple(entries)[:_MOST_DEVICES]


def _texts(file: ChosenSpans, fact: str, read: Callable[[str], int]) -> Int32:
    """The number that `read` makes of the text of each event, -1 for an event without one."""
    texts = file.collector.facts.texts.get(fact, ())
    numbers = [read(text) if isinstance(text, str) and text else -1 for text in texts]
    found: Int32 = np.array([*numbers, -1], np.int32)[file.spans[fact]]
    return found


def _position(entries: dict[Any, int], read: Callable[[str], Any], text: str) -> int:
    entry = read(text)
    return -1 if entry is None else entries.setdefault(entry, len(entries))


def _line(text: str) -> SourceLine | None:
    file, _, line = text.rpartition(":")
    return SourceLine(file, int(line)) if line.isdecimal() and len(line) <= _LONGEST_LINE else None


def _same(text: str) -> str:
    return text


#: Facts that point into a table of the trace.
_TABLES: tuple[tuple[str, str, Callable[[str], Any]], ...] = (
    ("overload", "overloads", _same),
    ("module", "modules", _same),
    ("line", "lines", _line),
)
