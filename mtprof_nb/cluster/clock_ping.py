"""Differences between the clocks of engines and of this process, measured by asking for the time."""

from __future__ import annotations

import time
from dataclasses import dataclass

from mtprof_nb.analysis import units
from mtprof_nb.cluster.engines import Engines
from mtprof_nb.cluster.on_engine import EngineClock, clock

_PINGS = 5


@dataclass(frozen=True)
class ClockOffset:
    """By how much the clock of an engine is ahead of this process's, and the largest error of that."""

    host: str
    offset_ns: int
    error_ns: int


def clock_offsets(engines: Engines) -> dict[int, ClockOffset]:
    """The offset of each engine that answers. On hosts whose clock is this one's, it is nearly 0."""
    best: dict[int, ClockOffset] = {}
    for engine in engines.ids:
        for _ in range(_PINGS):
            asked_ns = time.time_ns()
            told = engines.only(engine).ask(clock, patience_s=10).given.get(engine)
            if told is None:
                break
            found = _offset(asked_ns, EngineClock(*told), time.time_ns())
            if engine not in best or found.error_ns < best[engine].error_ns:
                best[engine] = found
    return best


def _offset(asked_ns: int, told: EngineClock, answered_ns: int) -> ClockOffset:
    """The engine looked at its clock at some moment between the question and the answer."""
    return ClockOffset(told.host, told.time_ns - (asked_ns + answered_ns) // 2, (answered_ns - asked_ns + 1) // 2)


def note_of(offsets: dict[int, ClockOffset]) -> str:
    """How well the clocks agree, as a sentence."""
    hosts = len({offset.host for offset in offsets.values()})
    worst = max(offset.error_ns for offset in offsets.values())
    return f"Clocks of {hosts} hosts were set by asking for the time: they agree within {units.duration(2 * worst)}."
