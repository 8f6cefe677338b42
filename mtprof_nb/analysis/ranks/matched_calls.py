"""Calls of collectives, each matched over the processes that took part in it, and how long each of these waited."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.analysis.ranks.ranked_processes import windows_of_processes
from mtprof_nb.model.collective_calls import CallKey, call_keys, rows_of_collectives
from mtprof_nb.model.device_facts import ELEMENT_BYTES
from mtprof_nb.model.trace import Bool, Int32, Int64, Shapes, Trace

#: By how many calls the beginnings of two recordings may differ.
_LARGEST_LAG = 16
_LEAST_COMMON = 2
#: By how much the clocks of two processes may differ.
_CLOCK_ERROR_NS = 100_000
#: A busy host may run the end of a collective so much later, or later by half of the longest call.
_LATEST_END_NS = 20_000_000
_MOST = 1 << 62


@dataclass(frozen=True, eq=False)
class MatchedCalls:
    """One row a call, one column a process, in the order in which the calls began."""

    #: Name and group of each call.
    keys: tuple[CallKey, ...]
    #: The event of a call in each process, -1 for a process that has none.
    event: Int32
    #: Whether each process has to wait for all, and all were in the call at one time.
    is_meeting: Bool
    #: Nanoseconds that each process waited in the call until the last one came; 0 where that is not known.
    wait_ns: Int64
    #: The wait without the part that is due to a later start of the last process's recording.
    blamed_ns: Int64
    #: The process that came last; -1 if no process waited, or if that is not known.
    last: Int32
    #: The time of the exchange itself: from the arrival of the last process to its end.
    exchange_ns: Int64
    #: Bytes of one process's input or output, whichever is larger; -1 if not known.
    nbytes: Int64

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def is_there(self) -> Bool:
        """Which processes took part in each call."""
        is_there: Bool = self.event >= 0
        return is_there


@once_a_trace
def matched_calls(trace: Trace) -> MatchedCalls:
    """The n-th call of a name in a group is the same one on all processes.

    A recording may begin some calls later than another one: the numbers are then shifted so that the ends of the calls
    are closest to each other, because a collective ends on all processes at nearly one time. The process that came last
    is the one with the shortest call, whatever its clock shows.
    """
    keys, event = _matched(trace)
    is_there = event >= 0
    start, lasted = (_taken(column, event) for column in (trace.start_ns, trace.duration_ns))
    is_meeting = np.array([key.waits_for_all for key in keys], np.bool_) & _at_one_time(start, lasted, is_there)
    shortest = np.where(is_there, lasted, _MOST).min(axis=1, initial=_MOST)
    wait = np.where(is_there & is_meeting[:, None], lasted - shortest[:, None], 0)
    last = np.where(wait.max(axis=1, initial=0) > 0, np.where(is_there, lasted, _MOST).argmin(axis=1), -1)
    return MatchedCalls(
        keys=keys,
        event=event,
        is_meeting=is_meeting,
        wait_ns=wait,
        blamed_ns=_blamed(trace, keys, start, wait, last),
        last=last.astype(np.int32),
        exchange_ns=shortest,
        nbytes=_nbytes(trace, event),
    )


def _taken(column: Int64, event: Int32) -> Int64:
    """The values of events, 0 for -1."""
    return np.append(column, 0)[event]


def _at_one_time(start: Int64, lasted: Int64, is_there: Bool) -> Bool:
    """Which calls have several processes that are all in the call at one moment, and end it together."""
    end = start + lasted
    came = np.where(is_there, start, -_MOST).max(axis=1, initial=-_MOST)
    first_end = np.where(is_there, end, _MOST).min(axis=1, initial=_MOST)
    last_end = np.where(is_there, end, -_MOST).max(axis=1, initial=-_MOST)
    latest_end = np.maximum(np.where(is_there, lasted, 0).max(axis=1, initial=0) // 2, _LATEST_END_NS)
    together = (came <= first_end + _CLOCK_ERROR_NS) & (last_end - first_end <= latest_end)
    is_one_call: Bool = together & (is_there.sum(axis=1) > 1)
    return is_one_call


def _blamed(trace: Trace, keys: tuple[CallKey, ...], start: Int64, wait: Int64, last: Int64) -> Int64:
    """`wait`, less the time by which the last process's recording began later, in the first meeting of a window."""
    blamed, seen = wait.copy(), dict[str, tuple[int, ...]]()
    began = [_began(trace, process, start[:, process]) for process in range(start.shape[1])]
    for call in np.flatnonzero(last >= 0).tolist():
        present = [process for process in range(len(began)) if wait[call, process] or process == last[call]]
        window = tuple(int(began[process][call]) for process in present)
        if seen.get(keys[call].group) != window:
            seen[keys[call].group] = window
            later = int(began[last[call]][call]) - np.array(window, np.int64)
            blamed[call, present] = np.maximum(wait[call, present] - np.maximum(later, 0), 0)
    return blamed


def _matched(trace: Trace) -> tuple[tuple[CallKey, ...], Int32]:
    """The key of each call and its event in each process, the calls in the order in which they began."""
    rows = rows_of_collectives(trace)
    process = trace.processes_of(trace.track[rows])
    calls: dict[CallKey, list[list[int]]] = {}
    for key, row, owner in zip(call_keys(trace, rows), rows.tolist(), process.tolist(), strict=True):
        if key.is_between_two:
            continue
        if key not in calls:
            calls[key] = [[] for _ in trace.processes]
        calls[key][owner].append(row)
    tables = [(key, _numbered(trace, owned)) for key, owned in calls.items()]
    keys = [key for key, table in tables for _ in range(len(table))]
    event = np.concatenate([np.empty((0, len(trace.processes)), np.int32), *(table for _, table in tables)])
    # The row of the first process to begin: events are ordered by start.
    first = np.where(event >= 0, event, np.iinfo(np.int32).max).min(axis=1, initial=np.iinfo(np.int32).max)
    order = np.argsort(first, kind="stable")
    return tuple(keys[place] for place in order.tolist()), event[order]


def _numbered(trace: Trace, owned: list[list[int]]) -> Int32:
    """A table of the calls of one key: `owned` has the events of each process, in order."""
    ends = [trace.end_ns[rows] for rows in owned]
    most = max(range(len(owned)), key=lambda process: len(owned[process]))
    lags = [_lag(ends[most], own) for own in ends]
    first = min(lag for lag, own in zip(lags, owned, strict=True) if own)
    length = max(lag - first + len(own) for lag, own in zip(lags, owned, strict=True))
    table = np.full((length, len(owned)), -1, np.int32)
    for process, (lag, own) in enumerate(zip(lags, owned, strict=True)):
        table[lag - first : lag - first + len(own), process] = own
    return table[(table >= 0).any(axis=1)]


def _lag(one: Int64, other: Int64) -> int:
    """By how many calls `other` begins later than `one`, so that their ends are as close as can be."""
    best, least = 0, _distance(one, other, 0)
    if least is None or least <= np.median(np.diff(one)) / 2:
        return 0
    for lag in range(-_LARGEST_LAG, max(_LARGEST_LAG, len(one) - len(other)) + 1):
        distance = _distance(one, other, lag)
        if distance is not None and distance < least:
            best, least = lag, distance
    return best


def _distance(one: Int64, other: Int64, lag: int) -> float | None:
    """The median distance of ends, if `other` begins `lag` calls later; None if too few calls are in common."""
    one, other = one[max(lag, 0) :], other[max(-lag, 0) :]
    common = min(len(one), len(other))
    if common < _LEAST_COMMON:
        return None
    return float(np.median(np.abs(one[:common] - other[:common])))


def _began(trace: Trace, process: int, times: Int64) -> Int64:
    """When the window of a process began in which each of `times` is."""
    begins = np.array([began for began, _ in windows_of_processes(trace)[process]], np.int64)
    of_times: Int64 = begins[np.maximum(np.searchsorted(begins, times, side="right") - 1, 0)]
    return of_times


def _nbytes(trace: Trace, event: Int32) -> Int64:
    """Bytes that the runtime reports; of calls on the host, those of the inputs, if their shapes were recorded."""
    moved = np.append(np.full(len(trace), -1) if trace.moved_bytes is None else trace.moved_bytes, -1)
    shape = np.append(np.full(len(trace), -1) if trace.shape is None else trace.shape, -1)
    sizes = np.array([*map(_size, trace.shapes, trace.dtypes or ((),) * len(trace.shapes)), -1], np.int64)
    most: Int64 = np.maximum(moved[event], sizes[shape[event]]).max(axis=1, initial=-1)
    return most


def _size(shapes: Shapes, dtypes: tuple[str, ...]) -> int:
    """Bytes of all tensors of one call; -1 if there are none, or a type is unknown."""
    nbytes = -1
    for shape, dtype in zip(shapes, dtypes, strict=False):
        lengths = [length for length in shape if isinstance(length, int)]
        if lengths and len(lengths) == len(shape):
            if dtype not in ELEMENT_BYTES:
                return -1
            nbytes = max(nbytes, 0) + math.prod(lengths) * ELEMENT_BYTES[dtype]
    return nbytes
