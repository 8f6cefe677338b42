"""Replays marks to find the lines that were running when each event of a trace began."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mtprof_nb.capture.hook import EventTimes
from mtprof_nb.capture.marks.mark_buffers import MarkBuffers, ThreadMarks
from mtprof_nb.capture.marks.mark_transform import ENTER, LEAVE, Place, Places
from mtprof_nb.model.bookkeeping import is_bookkeeping
from mtprof_nb.model.intervals import covered, covered_until
from mtprof_nb.model.schema import Bool, Columns, Int32, Int64
from mtprof_nb.model.trace import BACKWARD, OP, Frame, OutsideOps, SourceLine, StackInterner, Trace

#: How many marks are replayed, and how many gaps between marks are summed, at a time.
_PART = 1 << 16
_GAPS = 1 << 18


class _Spent(NamedTuple):
    """Time outside ops by node: the program's, and that which the profiler took for its marks and between them."""

    program_ns: Int64
    profiler_ns: Int64


class Replay:
    """Replays marks through calls and returns: the lines running after each mark, as a node of a stack tree."""

    def __init__(self, places: Places, file_of_unit: Callable[[int], str]) -> None:
        self._places = places.table
        self._functions = places.functions
        self._file_of_unit = file_of_unit
        self._interner = StackInterner()
        self._place: dict[int, Place] = {}
        self._parent: dict[int, int] = {}
        self._known: dict[tuple[int, int], int] = {}

    def nodes(self, places: Int32 | Int64) -> Int32:
        """The node after each mark of one thread, given the index of its place; -1 where no marked line is running."""
        known, node, nodes = self._known, -1, np.empty(len(places), np.int32)
        # In parts: as Python's integers, millions of marks take many times the memory.
        for first in range(0, len(places), _PART):
            part = []
            for index in places[first : first + _PART].tolist():
                following = known.get((node, index))
                if following is None:
                    following = known[node, index] = self._after(node, index)
                node = following
                part.append(node)
            nodes[first : first + len(part)] = part
        return nodes

    def place(self, node: int) -> Place:
        """A place at the innermost line of `node`."""
        return self._place[node]

    def callers(self, scopes: set[int]) -> Iterator[Place]:
        """Places at the lines outside `scopes` that called functions of `scopes`."""
        for node, place in self._place.items():
            parent = self._parent[node]
            if place.scope in scopes and parent >= 0 and self._place[parent].scope not in scopes:
                yield self._place[parent]

    def _after(self, node: int, index: int) -> int:
        place = self._places[index]
        if place.kind == ENTER:
            return self._line(node, index)
        same = node
        while same >= 0 and self._place[same].scope != place.scope:
            same = self._parent[same]
        if place.kind == LEAVE:
            # A function that was not marked when it began, or has returned already, ends nothing.
            return self._parent[same] if same >= 0 else node
        # An exception has ended the calls inside it. A function that is not on the stack resumes after an `await`.
        return self._line(self._parent[same] if same >= 0 else node, index)

    def _line(self, parent: int, index: int) -> int:
        place = self._places[index]
        frame = Frame(self._file_of_unit(place.unit), place.line, self._functions[place.scope].name)
        node = self._interner.child(parent, frame)
        self._place[node], self._parent[node] = place, parent
        return node

    def lines(self, node: Int32, spent: _Spent | None) -> Columns:
        """The line columns, by the node of each event, and the time outside ops of each line, by that of each node."""
        tree = self._interner.tree()
        lines: dict[SourceLine, int] = {}
        of_frame = [lines.setdefault(SourceLine(frame.file, frame.line), len(lines)) for frame in tree.frames]
        of_node = np.array(of_frame, np.int32)[tree.frame] if of_frame else np.empty(0, np.int32)
        line = np.full(len(node), -1, np.int32)
        known = node >= 0
        line[known] = of_node[node[known]]
        outside = None if spent is None else self._by_line(spent, of_node.tolist(), tuple(lines))
        return {"line": line, "lines": tuple(lines), "line_stack": node, "line_stacks": tree, "outside": outside}

    def _by_line(
        self, spent: _Spent, of_node: list[int], lines: tuple[SourceLine, ...]
    ) -> dict[SourceLine, OutsideOps]:
        own, total, profiler = ([0] * len(lines) for _ in range(3))
        columns = spent.program_ns.tolist(), spent.profiler_ns.tolist()
        for node, (time_ns, profiler_ns) in enumerate(zip(*columns, strict=True)):
            own[of_node[node]] += time_ns
            profiler[of_node[node]] += profiler_ns
            called_by, above = set(), node
            while above >= 0:
                called_by.add(of_node[above])
                above = self._parent[above]
            for line in called_by:
                total[line] += time_ns
        return {line: OutsideOps(*times) for line, *times in zip(lines, own, total, profiler, strict=True)}


def _own_marks(marks: ThreadMarks, places: Places) -> ThreadMarks:
    """The marks of this recording, with the index of each place as its number."""
    place, is_own = own_places(marks.number, places)
    return replace(marks, time_ns=marks.time_ns if is_own.all() else marks.time_ns[is_own], number=place)


def own_places(numbers: Int32 | Int64, places: Places) -> tuple[Int32, Bool]:
    """The index in `places` of each mark of this recording, and which marks those are.

    The others come from code of an earlier recording that runs on.
    """
    is_own = (numbers >= places.first) & (numbers < places.first + len(places.table))
    return (numbers[is_own] - places.first).astype(np.int32), is_own


def marked_lines(
    trace: Trace, buffers: MarkBuffers, places: Places, files: Sequence[str], times_of: EventTimes
) -> Columns:
    """The lines of a trace, the time of marks, and collections: an event takes the last mark of its thread before it.

    An event of the backward pass on a thread of autograd's engine takes the line of the cell's thread, which waits.
    """
    replay = Replay(places, files.__getitem__)
    node = np.full(len(trace), -1, np.int32)
    threads = [_own_marks(marks, places) for marks in buffers.threads()]
    marked = {marks.native_id for marks in threads}
    unmarked = [index for index, thread in enumerate(trace.tracks) if thread.native_id not in marked]
    in_engine = np.isin(trace.track, unmarked) & (trace.phase == BACKWARD)
    ended_ns = int(times_of(np.array([buffers.ended_ns or time.perf_counter_ns()], np.int64))[0])
    spent, own_ns = None, trace.own_ns
    for marks in threads:
        own = [index for index, thread in enumerate(trace.tracks) if thread.native_id == marks.native_id]
        rows = np.isin(trace.track, own)
        if marks.native_id == buffers.cell_thread:
            rows |= in_engine
        chosen = np.flatnonzero(rows & ~trace.on_device)
        last = np.searchsorted(times_of(marks.time_ns), trace.start_ns[chosen], side="right") - 1
        nodes = np.append(replay.nodes(marks.number), np.int32(-1))
        node[chosen] = nodes[last]
        if marks.native_id == buffers.cell_thread and trace.has_all_ops:
            cost_ns = buffers.costs.by_place(places)
            window_ns = trace.began_ns, min(ended_ns, trace.ended_ns)
            spent, own_ns = _outside_ops(trace, times_of, window_ns, buffers.own, marks, nodes[:-1], cost_ns)
    if buffers.note:
        node[trace.start_ns > ended_ns] = -1
    overhead_ns = trace.overhead_ns if trace.overhead_ns < 0 else trace.overhead_ns + own_ns - trace.own_ns
    working = times_of(np.array(sorted(buffers.own), np.int64).reshape(-1, 2))
    cell = [index for index, thread in enumerate(trace.tracks) if thread.native_id == buffers.cell_thread]
    times: Columns = {"own_ns": own_ns, "overhead_ns": overhead_ns}
    return replay.lines(node, spent) | times | _of_program(trace, working[:, 0], working[:, 1], cell)


def with_end(columns: Columns, texts: Mapping[str, str]) -> Columns:
    """`columns` of `marked_lines`, without time of the program in lines beyond the end of their text.

    On such a line a call ends the recording: its time is the profiler's.
    """
    ends = {file: len(text.splitlines()) for file, text in texts.items()}
    outside: dict[SourceLine, OutsideOps] = dict(columns["outside"] or {})
    behind = {line: times for line, times in outside.items() if line.line > ends.get(line.file, line.line)}
    outside |= {line: OutsideOps(0, 0, times.own_ns + times.profiler_ns) for line, times in behind.items()}
    ended_ns = sum(times.own_ns for times in behind.values())
    times = {name: columns[name] + ended_ns for name in ("own_ns", "overhead_ns") if columns[name] >= 0}
    return {**columns, **times, "outside": outside} if behind else columns


def _of_program(trace: Trace, starts: Int64, ends: Int64, cell: list[int]) -> Columns:
    """The garbage collections and the samples of the cell's thread that are not from the profiler's own work."""
    collections, samples = trace.collections, trace.samples
    if collections is not None:
        collections = collections.take(~covered(starts, ends, collections.start_ns))
    if samples is not None:
        samples = samples.take(~(covered(starts, ends, samples.time_ns) & np.isin(samples.track, cell)))
    return {"collections": collections, "samples": samples}


def _outside_ops(
    trace: Trace,
    times_of: EventTimes,
    window_ns: tuple[int, int],
    own: list[tuple[int, int]],
    marks: ThreadMarks,
    node: Int32,
    cost_ns: Int64,
) -> tuple[_Spent, int]:
    """Time outside ops of each node: the gaps after its marks, without ops, the profiler's own work and mark costs.

    The number is all time of the profiler's own work and of the marks, in lines and elsewhere. `cost_ns` is by place.
    """
    is_op = (trace.kind == OP) & ~trace.is_async & ~is_bookkeeping(trace)
    ops = trace.start_ns[is_op], trace.end_ns[is_op]
    starts, ends = map(np.append, ops, _own_intervals(trace, times_of, window_ns, own))
    order = np.argsort(starts, kind="stable")
    excluded = starts[order], ends[order]
    # The last sum is for node -1: time in no line.
    spent_ns, gaps = np.zeros(int(node.max(initial=-1)) + 2, np.int64), len(node) + 1
    outside_ns = np.zeros_like(spent_ns)
    # In parts: each step below makes a column.
    for first in range(0, gaps, _GAPS):
        last = min(first + _GAPS, gaps)
        # The marks around these gaps; before the first mark and after the last, the recording begins and ends.
        inside, beyond = slice(max(first - 1, 0), last), (int(first == 0), int(last == gaps))
        moments = np.pad(times_of(marks.time_ns[inside]), beyond, constant_values=window_ns)
        moments = moments.clip(*window_ns)
        left_ns = np.diff(moments - covered_until(*excluded, moments))
        # A mark's cost lies partly before and partly after its reading of the clock: half goes to each gap.
        costs_ns = np.pad(cost_ns[marks.number[inside]], beyond)
        left_ns -= np.where(left_ns > 0, (costs_ns[:-1] + costs_ns[1:]) // 2, 0)
        of_gap = np.pad(node[inside], beyond, constant_values=-1)[:-1]
        np.add.at(spent_ns, of_gap, left_ns)
        np.add.at(outside_ns, of_gap, np.diff(moments - covered_until(*ops, moments)))
    # The sums are clipped, not each gap: some marks cost less than the median, and others more.
    spent_ns = spent_ns.clip(0)
    profiler_ns = outside_ns - spent_ns
    return _Spent(spent_ns[:-1], profiler_ns[:-1]), int(profiler_ns.sum())


def _own_intervals(
    trace: Trace, times_of: EventTimes, window_ns: tuple[int, int], own: list[tuple[int, int]]
) -> tuple[Int64, Int64]:
    """Intervals of the profiler's own work in the window: at its start, and those that the marks noted."""
    noted = times_of(np.array(own, np.int64).reshape(-1, 2))
    both = np.append(noted, [[trace.began_ns, trace.began_ns + trace.own_ns]], axis=0)
    starts, ends = np.clip(both, *window_ns).T
    return starts, ends
