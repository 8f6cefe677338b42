"""Clocks of several processes, aligned on collectives: a collective ends on all of its processes at nearly one time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mtprof_nb.model.collective_calls import CallKey, call_keys, rows_of_collectives
from mtprof_nb.model.common_terms import moved_clock
from mtprof_nb.model.schema import Int64
from mtprof_nb.model.trace import Trace

#: By how many collectives the beginnings of two recordings may differ.
_LARGEST_LAG = 16
_LEAST_COMMON = 2
#: If half of the ends differ by more than this, they are not those of the same collectives.
_LARGEST_ERROR_NS = 500_000

_NOT_ALIGNED = "Clocks were not aligned: the recordings have no collectives in common whose ends agree."

#: Ends of collectives by name and group, in the order in which they began.
Ends = dict[CallKey, Int64]


def align(traces: Sequence[Trace], otherwise: str = _NOT_ALIGNED) -> list[Trace]:
    """The traces with the clock of the first one, as far as they have collectives in common; a note states how well.

    If they have none, `otherwise` is the note.

    A collective is known by its name, its group, and its number among those. A trace whose clock agrees with the first
    within the differences between single collectives is not moved.
    """
    if len(traces) < 2:
        return list(traces)
    offset: dict[int, int] = {0: 0}
    errors: list[Int64] = []
    for known, new, match in _closest([_ends(trace) for trace in traces]):
        own = offset[known] + match.offset_ns
        offset[new] = own if abs(own) > match.spread_ns else 0
        errors.append(np.abs(match.differences_ns + offset[known] - offset[new]))
    note = _note(traces, offset, errors) or otherwise
    return [
        replace(moved_clock(trace, offset.get(place, 0)), notes=(*trace.notes, note))
        for place, trace in enumerate(traces)
    ]


@dataclass(frozen=True)
class _Match:
    """Differences of the ends of the collectives that two processes have in common: the first's less the second's."""

    differences_ns: Int64

    @property
    def offset_ns(self) -> int:
        return int(np.median(self.differences_ns))

    @property
    def spread_ns(self) -> int:
        """The most by which a difference is away from the offset."""
        return int(np.abs(self.differences_ns - self.offset_ns).max(initial=0))

    @property
    def is_usable(self) -> bool:
        """Whether these are the ends of the same collectives."""
        if len(self.differences_ns) < _LEAST_COMMON:
            return False
        return bool(np.median(np.abs(self.differences_ns - self.offset_ns)) <= _LARGEST_ERROR_NS)


def _ends(trace: Trace) -> Ends:
    """The ends of the collectives of a trace. Those of exchanges between two processes do not agree."""
    rows = rows_of_collectives(trace)
    by_key: dict[CallKey, list[int]] = {}
    for key, end in zip(call_keys(trace, rows), trace.end_ns[rows].tolist(), strict=True):
        if not key.is_between_two:
            by_key.setdefault(key, []).append(end)
    return {key: np.array(ends, np.int64) for key, ends in by_key.items()}


def _closest(ends: Sequence[Ends]) -> Iterator[tuple[int, int, _Match]]:
    """From the first trace on, a trace whose clock is known, one that becomes known by it, and their match.

    The pair with the most collectives in common is next. A trace that has all of its collectives in common with one is
    compared with no other: in most jobs, that is so for all of them and the first.
    """
    sizes = [sum(map(len, own.values())) for own in ends]
    best: dict[int, tuple[int, _Match]] = {}
    left, known = set(range(1, len(ends))), 0
    while left:
        for new in left:
            most = len(best[new][1].differences_ns) if new in best else 0
            if most < sizes[new]:
                match = _match(ends[known], ends[new])
                if match.is_usable and len(match.differences_ns) > most:
                    best[new] = known, match
        if not best:
            return
        new = min(best, key=lambda place: (-len(best[place][1].differences_ns), place))
        left.remove(new)
        yield best[new][0], new, best.pop(new)[1]
        known = new


def _match(first: Ends, second: Ends) -> _Match:
    """The match of the n-th collectives of each name, or where their ends disagree, of those that fit best."""
    common = [(first[key], second[key]) for key in first if key in second]
    nothing = np.empty(0, np.int64)
    by_number = [one[: len(other)] - other[: len(one)] for one, other in common]
    numbered = _Match(np.concatenate([nothing, *by_number]))
    if numbered.is_usable:
        return numbered
    # A recording may begin later than the other one, or lack some collectives.
    nearby = [
        one[max(place - _LARGEST_LAG, 0) : place + _LARGEST_LAG + 1] - end
        for one, other in common
        for place, end in enumerate(other.tolist())
    ]
    return _Match(_densest(np.sort(np.concatenate([nothing, *nearby])), sum(min(map(len, pair)) for pair in common)))


def _densest(differences: Int64, pairs: int) -> Int64:
    """The most differences that lie close together, if they are of a fifth of the `pairs` at least."""
    last = np.searchsorted(differences, differences + 2 * _LARGEST_ERROR_NS, "right")
    counts = last - np.arange(len(differences))
    if not len(counts) or counts.max() * 5 < pairs:
        return differences[:0]
    begin = int(counts.argmax())
    return differences[begin : last[begin]]


def _note(traces: Sequence[Trace], offset: dict[int, int], errors: list[Int64]) -> str:
    if not errors:
        return ""
    all_errors = np.concatenate(errors)
    moved = sum(1 for ns in offset.values() if ns)
    done = f"{moved} of {len(traces)} clocks moved" if moved else "Clocks left as they are"
    left = [traces[place].processes[0].title for place in range(len(traces)) if place not in offset]
    others = f" Not aligned, without such collectives: {', '.join(left)}." if left else ""
    return (
        f"{done}: the ends of {len(all_errors):,} collectives in common then differ by "
        f"{np.median(all_errors) / 1000:.1f} µs at the median, {all_errors.max() / 1000:.1f} µs at most.{others}"
    )
