"""Which of the facts that an export carries can be true of the file that has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mtprof_nb.model.schema import TIMES, Columns
from mtprof_nb.model.trace import OutsideOps, Process, ProcessFacts, SourceLine, Unrecorded

_MOST_RANK = 2**31


class Window(NamedTuple):
    """Start and end of a recording, and of how many processes times are summed."""

    began_ns: int
    ended_ns: int
    processes: int = 1

    def has_time(self, ns: int) -> bool:
        """Whether `ns` is a time that can have passed in the window."""
        return 0 <= ns <= (self.ended_ns - self.began_ns) * self.processes

    def has(self, began_ns: int, ended_ns: int) -> bool:
        """Whether a window is within this one."""
        return self.began_ns <= began_ns <= ended_ns <= self.ended_ns


def possible_facts(carried: Columns, window: Window) -> Columns:
    """The fields of a `Trace` among `carried` that can be those of a recording with this window."""
    return {name: value for name, value in carried.items() if name not in _CHECKS or _CHECKS[name](value, window)}


def _is_count(number: int, _: Window) -> bool:
    return 0 <= number < TIMES.limit


def _is_known_or_not(ns: int, _: Window) -> bool:
    return -1 <= ns < TIMES.limit


def _are_within(windows: tuple[tuple[int, int], ...], within: Window) -> bool:
    """Whether there are windows, each once and in order, as an export has them."""
    return bool(windows) and list(windows) == sorted(set(windows)) and all(within.has(*one) for one in windows)


def _follow(spans: tuple[Unrecorded, ...], within: Window) -> bool:
    """Whether these follow moments of the window."""
    return all(within.has(began_ns, began_ns) and began_ns <= ended_ns for began_ns, ended_ns, _ in spans)


def _are_starts(starts: tuple[tuple[int, int], ...], within: Window) -> bool:
    is_within = all(within.has(start_ns, start_ns) and number >= -1 for start_ns, number in starts)
    return is_within and list(starts) == sorted(starts)


def _have_times(
    by_line: Mapping[SourceLine, OutsideOps] | tuple[tuple[SourceLine, OutsideOps], ...] | None, window: Window
) -> bool:
    pairs = by_line.items() if isinstance(by_line, Mapping) else by_line or ()
    return all(
        0 <= own_ns <= total_ns and window.has_time(total_ns) and window.has_time(profiler_ns)
        for _, (own_ns, total_ns, profiler_ns) in pairs
    )


def _are_processes(pairs: tuple[tuple[int, Process], ...], _: Window) -> bool:
    return all(-1 <= process.rank < _MOST_RANK for _, process in pairs)


def _are_of_processes(facts: tuple[ProcessFacts, ...], window: Window) -> bool:
    return all(_is_of_process(one, window) for one in facts)


def _is_of_process(facts: ProcessFacts, window: Window) -> bool:
    if not window.has(facts.began_ns, facts.ended_ns):
        return False
    told = facts._asdict()
    if not facts.windows:
        del told["windows"]
    return len(possible_facts(told, Window(facts.began_ns, facts.ended_ns))) == len(told)


#: Fields that cannot have every value of their type.
_CHECKS: dict[str, Callable[[Any, Window], bool]] = {
    "own_ns": lambda ns, window: window.has_time(ns),
    "overhead_ns": _is_known_or_not,
    "between_ops_ns": _is_count,
    "dropped": _is_count,
    "windows": _are_within,
    "unrecorded": _follow,
    "step_starts": _are_starts,
    "outside": _have_times,
    "processes": _are_processes,
    "process_facts": _are_of_processes,
}
