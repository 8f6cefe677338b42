"""Differences between the clocks of engines and of this process, measured by asking for the time."""

from __future__ import annotations

import time
from dataclasses import dataclass

from mtprof_nb.analysis import units
from mtprof_nb.cluster.engines import Engines
from mtprof_nb.cluster.on_engine import clock

_PINGS = 5
_PATIENCE_S = 10.0


@dataclass(frozen=True)
class ClockOffset:
    """By how much the clock of an engine is ahead of this process's, and the largest error of that."""

    host: str
    offset_ns: int
    error_ns: int


def clock_offsets(engines: Engines) -> dict[int, ClockOffset]:
    """The offset of each engine that answers; 0 if all are on one host. The engines of a host have one clock."""
    clocks = engines.ask(clock, patience_s=_PATIENCE_S).given
    hosts = {engine: host for engine, (host, _) in clocks.items()}
    if len(set(hosts.values())) < 2:
        return {engine: ClockOffset(host, 0, 0) for engine, host in hosts.items()}
    first = {host: engine for engine, host in reversed(hosts.items())}
    of_host = {host: _measured(engines.only(engine), host) for host, engine in first.items()}
    return {engine: of_host[host] for engine, host in hosts.items()}


def _measured(engine: Engines, host: str) -> ClockOffset:
    """The offset of one engine: of several questions, the one that was answered quickest is the most exact.

    The engine looked at its clock at some moment between the question and the answer.
    """
    offsets = []
    for _ in range(_PINGS):
        asked_ns = time.time_ns()
        for _, time_ns in engine.ask(clock, patience_s=_PATIENCE_S).given.values():
            answered_ns = time.time_ns()
            middle_ns, error_ns = (asked_ns + answered_ns) // 2, (answered_ns - asked_ns + 1) // 2
            offsets.append(ClockOffset(host, time_ns - middle_ns, error_ns))
    return min(offsets, key=lambda offset: offset.error_ns, default=ClockOffset(host, 0, 0))


def note_of(offsets: dict[int, ClockOffset]) -> str:
    """How well the clocks agree, as a sentence."""
    hosts = len({offset.host for offset in offsets.values()})
    worst = max(offset.error_ns for offset in offsets.values())
    return f"Clocks of {hosts} hosts were set by asking for the time: they agree within {units.duration(2 * worst)}."
