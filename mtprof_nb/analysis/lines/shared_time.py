"""Fused kernels of compiled code: events whose time several lines share, by estimate."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from mtprof_nb.analysis.devices.kernel_owners import kernel_owners
from mtprof_nb.analysis.lines.user_lines import Chains, chains_of_stacks
from mtprof_nb.model.trace import Bool, Int32, Int64, Trace

#: The parts into which the time of an event is divided.
_WHOLE = 1 << 16


@dataclass(frozen=True, eq=False)
class SharedTime:
    """The lines of events that have several: a row for each event and line."""

    event: Int64
    chain: Int32
    #: Parts of `_WHOLE` before the row's, and up to its end.
    first: Int64
    last: Int64
    #: The chains of each fused kernel.
    fused: tuple[tuple[int, ...], ...] = ()

    def parts(self, values: Int64) -> Int64:
        """The part of each row in the values of events; those of an event add up to its value."""
        whole = values[self.event]
        parts: Int64 = whole * self.last // _WHOLE - whole * self.first // _WHOLE
        return parts

    def moved(self, own: Int32 | Int64, to: Int32 | Int64, values: Int64, size: int) -> Int64:
        """Changes of sums by groups: from each event's `own` group, its parts go to groups `to`."""
        change, parts = np.zeros(size, np.int64), self.parts(values)
        np.add.at(change, to, parts)
        np.subtract.at(change, own[self.event], parts)
        return change

    def of(self, chosen: Bool) -> SharedTime:
        """The rows of chosen events."""
        rows = chosen[self.event]
        columns = (self.event[rows], self.chain[rows], self.first[rows], self.last[rows])
        return SharedTime(*columns, self.fused)


def shared_time(trace: Trace, chains: Chains, own: Int32) -> SharedTime:
    """The events of fused kernels with several lines; `own` has the chain of each event."""
    shares = _shares(trace)
    calls = np.array(sorted(shares), np.int64)
    stack = _stacks(trace, calls)
    events = np.flatnonzero(np.isin(stack, calls))
    if not len(events):
        none = np.empty(0, np.int64)
        return SharedTime(none, none.astype(np.int32), none, none)
    nodes = np.array([node for call in calls.tolist() for node in shares[call]], np.int64)
    chain = chains_of_stacks(trace, chains, nodes)
    last = np.concatenate([_ends(shares[call]) for call in calls.tolist()])
    sizes = np.array([len(shares[call]) for call in calls.tolist()], np.int64)
    begin = np.cumsum(sizes) - sizes
    fused = tuple(tuple(one.tolist()) for one in np.split(chain, begin[1:]))
    position = np.searchsorted(calls, stack[events])
    counts = sizes[position]
    event = np.repeat(events, counts)
    inside = np.arange(len(event)) - np.repeat(np.cumsum(counts) - counts, counts)
    row = np.repeat(begin[position], counts) + inside
    first = np.where(inside == 0, 0, last[row - 1])
    # The largest share is the event's own, which marks may have given a more exact caller.
    return SharedTime(event, np.where(inside == 0, own[event], chain[row]), first, last[row], fused)


def _stacks(trace: Trace, calls: Int64) -> Int32:
    """The stack of each event; of a kernel that has none of these calls, that of its owner."""
    if trace.stack is None:
        return np.full(len(trace), -1, np.int32)
    owner = kernel_owners(trace)
    return np.where((owner < 0) | np.isin(trace.stack, calls), trace.stack, trace.stack[owner])


def _shares(trace: Trace) -> dict[int, Counter[int]]:
    """For each call with several lines their stacks, the largest first, and weights."""
    found: dict[int, Counter[int]] = {}
    if trace.compiled is not None:
        calls = trace.compiled
        columns = (calls.call.tolist(), calls.stack.tolist(), calls.weight.tolist())
        for call, stack, weight in zip(*columns, strict=True):
            found.setdefault(call, Counter())[stack] += weight
    return {call: Counter(dict(one.most_common())) for call, one in found.items() if len(one) > 1}


def _ends(weights: Counter[int]) -> Int64:
    """Where the parts of `_WHOLE` end that are in proportion to weights."""
    sums = np.cumsum(np.array(list(weights.values()), np.float64))
    ends: Int64 = np.round(sums / sums[-1] * _WHOLE).astype(np.int64)
    return ends
