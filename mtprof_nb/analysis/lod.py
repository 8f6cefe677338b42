"""Level of detail: a window of any number of events as a bounded number of blocks that lose no time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mtprof_nb.model.trace import Bool, Int8, Int32, Int64

#: A chart stays smooth up to about this many blocks.
LIMIT = 2_000
#: A level with more blocks than this is computed for each window, and not cached.
_KEEP = 300_000


@dataclass(frozen=True, eq=False)
class Blocks:
    """Blocks to draw: single events, or neighbours of one row that are too short to draw apart.

    A block reaches from the start of its first event to the end of its last; no duration is widened.
    """

    row: Int32
    start_ns: Int64
    end_ns: Int64
    #: How many events a block holds, and the sum of their durations.
    count: Int64
    time_ns: Int64
    #: The longest event of the block, as its position in the trace.
    event: Int64
    #: The block's events are `Levels.events[first:last]`.
    first: Int64
    last: Int64
    #: Events shorter than this were merged with their neighbours.
    merged_below_ns: int

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True, eq=False)
class Parts:
    """Blocks divided by a code of their events: one entry for each block and code that occurs in it."""

    #: The position of the block among its `Blocks`.
    block: Int64
    code: Int8
    count: Int64
    time_ns: Int64
    #: The longest event of the part, as its position in the trace.
    event: Int64

    def __len__(self) -> int:
        return len(self.block)

    def dominant(self, blocks: int) -> Int8:
        """For each of `blocks` blocks the code that took the most time."""
        order = np.lexsort((-self.code, self.time_ns))
        codes = np.zeros(blocks, np.int8)
        codes[self.block[order]] = self.code[order]
        return codes


class Levels:
    """Events arranged in rows, from which any window can be drawn.

    `row` is -1 for an event that is not drawn. Within a row, starts and ends both rise.
    """

    def __init__(self, row: Int32, start_ns: Int64, duration_ns: Int64) -> None:
        drawn = np.flatnonzero(row >= 0)
        rows = row[drawn]
        narrow = rows.astype(np.int16) if rows.max(initial=0) < 2**15 else rows
        #: Positions in the trace, by row, then by start.
        self.events: Int64 = drawn[np.argsort(narrow, kind="stable")]
        self._row = row[self.events]
        self._start = start_ns[self.events]
        self._duration = duration_ns[self.events]
        self._end = self._start + self._duration
        self._time_before = np.concatenate(([0], np.cumsum(self._duration)))
        self._origin = int(self._start.min(initial=0)) if len(drawn) == 0 else int(self._start.min())
        edges = np.flatnonzero(np.diff(self._row)) + 1
        self._row_edges = np.concatenate(([0], edges, [len(drawn)])) if len(drawn) else np.zeros(1, np.int64)
        self._kept: dict[int, Int64] = {}

    def window(self, begin_ns: int, end_ns: int, limit: int = LIMIT, pixels: int = 1_000) -> Blocks:
        """The events that touch the window, as at most `limit` blocks (or one a row, where there are more rows).

        Neighbours shorter than a pixel are merged, and longer ones only as far as `limit` demands.
        """
        spans = self._spans(begin_ns, end_ns)
        level = max(int(max(end_ns - begin_ns, 1) / max(pixels, 1)).bit_length() - 1, 0)
        coarsest = max(int(self._end.max(initial=0)) - self._origin, 1).bit_length()
        first, last = self._blocks(spans, level)
        is_begin = np.isin(first, [begin for begin, _ in spans])
        while len(first) > limit and level <= coarsest:
            level += 1
            # Blocks of a coarser level begin where finer ones do.
            stays = self._begins_at(first, level) | is_begin
            last = last[np.append(np.flatnonzero(stays)[1:] - 1, len(first) - 1)]
            first, is_begin = first[stays], is_begin[stays]
        return self._measured(first, last, 1 << level)

    def parts(self, blocks: Blocks, code: Int8, codes: int) -> Parts:
        """The blocks divided by a `code` (one an event of the trace, each below `codes`); no time or event is lost."""
        owner, members = self._members(blocks)
        slot = owner * codes + code[self.events[members]]
        count = np.bincount(slot, minlength=len(blocks) * codes)
        used = np.flatnonzero(count)
        number = np.full(len(count), -1, np.int64)
        number[used] = np.arange(len(used))
        part, duration = number[slot], self._duration[members]
        time_ns, longest_ns = np.zeros(len(used), np.int64), np.full(len(used), -1, np.int64)
        np.add.at(time_ns, part, duration)
        np.maximum.at(longest_ns, part, duration)
        event = np.empty(len(used), np.int64)
        # Backwards, so that of equally long events the first one stays.
        longest = np.flatnonzero(duration == longest_ns[part])[::-1]
        event[part[longest]] = self.events[members[longest]]
        return Parts(used // codes, (used % codes).astype(np.int8), count[used], time_ns, event)

    def held(self, blocks: Blocks, chosen: npt.NDArray[np.bool_]) -> Int64:
        """How many of the events in the mask `chosen` each block holds."""
        before = np.concatenate(([0], np.cumsum(chosen[self.events])))
        return before[blocks.last] - before[blocks.first]

    def _members(self, blocks: Blocks) -> tuple[Int64, Int64]:
        """For every event of the blocks: the block, and the position in `events`."""
        owner = np.repeat(np.arange(len(blocks)), blocks.count)
        offset = np.arange(len(owner)) - np.repeat(np.cumsum(blocks.count) - blocks.count, blocks.count)
        return owner, blocks.first[owner] + offset

    def _spans(self, begin_ns: int, end_ns: int) -> list[tuple[int, int]]:
        """For each row, the run of events that touch the window."""
        spans = []
        for low, high in zip(self._row_edges[:-1].tolist(), self._row_edges[1:].tolist(), strict=True):
            first = low + int(np.searchsorted(self._end[low:high], begin_ns, side="left"))
            last = low + int(np.searchsorted(self._start[low:high], end_ns, side="right"))
            if first < last:
                spans.append((first, last))
        return spans

    def _blocks(self, spans: list[tuple[int, int]], level: int) -> tuple[Int64, Int64]:
        """Where the blocks of the spans begin and end, clipped to the spans."""
        begins = [self._in_span(first, last, level) for first, last in spans]
        if not begins:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        firsts = np.concatenate(begins)
        lasts = np.concatenate([np.append(part[1:], span[1]) for part, span in zip(begins, spans, strict=True)])
        return firsts, lasts

    def _in_span(self, first: int, last: int, level: int) -> Int64:
        kept = self._kept.get(level)
        if kept is None and last - first > len(self.events) // 16:
            kept = self._begins(0, len(self.events), level)
            if len(kept) <= _KEEP:
                self._kept[level] = kept
        if kept is None:
            return self._begins(first, last, level)
        low, high = np.searchsorted(kept, (first, last))
        begins = kept[low:high]
        return begins if len(begins) and begins[0] == first else np.concatenate(([first], begins))

    def _begins(self, first: int, last: int, level: int) -> Int64:
        """Positions in [first, last) where a block begins: a new row, a new cell of the grid, or a long event."""
        cell = (self._start[first:last] - self._origin) >> level
        alone = self._duration[first:last] >= (1 << level)
        begins = np.empty(last - first, np.bool_)
        begins[0] = True
        np.not_equal(cell[1:], cell[:-1], out=begins[1:])
        begins[1:] |= self._row[first + 1 : last] != self._row[first : last - 1]
        begins |= alone
        begins[1:] |= alone[:-1]
        return np.flatnonzero(begins) + first

    def _begins_at(self, first: Int64, level: int) -> Bool:
        """At which positions a block begins, of positions where blocks of a finer level begin."""
        before = np.maximum(first - 1, 0)
        cell, cell_before = ((self._start[rows] - self._origin) >> level for rows in (first, before))
        begins: Bool = (cell != cell_before) | (self._row[first] != self._row[before]) | (first == 0)
        begins |= np.maximum(self._duration[first], self._duration[before]) >= (1 << level)
        return begins

    def _measured(self, first: Int64, last: Int64, merged_below_ns: int) -> Blocks:
        longest = first.copy()
        for block in np.flatnonzero(last - first > 1).tolist():
            low = first[block]
            longest[block] = low + int(self._duration[low : last[block]].argmax())
        return Blocks(
            row=self._row[first],
            start_ns=self._start[first],
            end_ns=self._end[last - 1],
            count=last - first,
            time_ns=self._time_before[last] - self._time_before[first],
            event=self.events[longest],
            first=first,
            last=last,
            merged_below_ns=merged_below_ns,
        )
