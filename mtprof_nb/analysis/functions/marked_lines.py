"""Marked lines. Marks measure their time, and take time themselves that is not the program's.

Samples count the time of the marks for the line, too. It is subtracted: first from the samples of the line itself,
then from those of the functions that it called.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from mtprof_nb.analysis.costs import counted_ops
from mtprof_nb.model.intervals import covered_length
from mtprof_nb.model.one_process import facts_by_process
from mtprof_nb.model.source_files import is_cell
from mtprof_nb.model.trace import Bool, Frame, Int32, Int64, OutsideOps, ProcessFacts, SourceLine, StackTree, Trace

_TOP_LEVEL = "<module>"


class MarkedLines:
    """The lines whose time was measured by marks, and their functions."""

    def __init__(self, lines: Mapping[SourceLine, OutsideOps], line_stacks: StackTree | None) -> None:
        frames = line_stacks.frames if lines and line_stacks is not None else ()
        self._functions = {(frame.file, frame.function) for frame in frames} | {
            (line.file, _TOP_LEVEL) for line in lines
        }
        self._lines: dict[str, list[int]] = {}
        for line in sorted(lines):
            self._lines.setdefault(line.file, []).append(line.line)

    def is_around(self, frame: Frame) -> bool:
        """Whether a frame is of the cell that calls a marked statement: no part of what is recorded."""
        is_marked = (frame.file, frame.function) in self._functions
        return bool(self._lines) and not is_marked and frame.function == _TOP_LEVEL and is_cell(frame.file)

    def statement(self, frame: Frame) -> SourceLine | None:
        """The marked line of the statement that a frame is running; None in a function without marks."""
        if (frame.file, frame.function) not in self._functions:
            return None
        lines = self._lines.get(frame.file, [])
        position = bisect_right(lines, frame.line)  # a statement may have several lines
        return SourceLine(frame.file, lines[position - 1] if position else frame.line)

    def innermost(self, tree: StackTree) -> list[tuple[SourceLine | None, bool]]:
        """For each stack its innermost marked line, and whether that line itself was running; then (None, False).

        None for a stack of another thread: marks measure the thread that runs the top level of the marked code.
        """
        statements = [self.statement(frame) for frame in tree.frames]
        innermost: list[tuple[SourceLine | None, bool]] = []
        for frame, parent in zip(tree.frame.tolist(), tree.parent.tolist(), strict=True):
            line, called_by = statements[frame], innermost[parent][0] if parent >= 0 else None
            is_marked = line is not None and (called_by is not None or tree.frames[frame].function == _TOP_LEVEL)
            innermost.append((line if is_marked else called_by, is_marked))
        return [*innermost, (None, False)]


class Outside(NamedTuple):
    """Time outside ops in rows: a node of `Trace.stacks`, the thread, and the time in Python code and in waiting."""

    stack: Int32
    track: Int32
    python_ns: Int64
    waiting_ns: Int64


def without_marks(trace: Trace, time: Outside) -> tuple[Int64, Int64]:
    """The time of each row in Python code and in waiting without the profiler's, where lines were marked.

    With its ops, the time of the thread that ran these lines is then that of the program.
    """
    times, process = np.stack([time.python_ns, time.waiting_ns]), trace.processes_of(time.track)
    for number, facts in enumerate(facts_by_process(trace)):
        if any(one.profiler_ns for _, one in facts.outside or ()):
            rows = np.flatnonzero((process == number) & times.any(axis=0))
            _take(trace, time, times, rows, facts)
    return times[0], times[1]


def marked_tracks(trace: Trace, tracks: Int32, is_marked: Bool) -> list[int]:
    """The threads that ran marked lines, as their rows show; the main thread if no row has a marked line.

    `tracks` has the thread of each row, all of one process.
    """
    seen: list[int] = np.unique(tracks[is_marked] if is_marked.any() else tracks).tolist()
    if is_marked.any():
        return seen
    own = [(number, trace.tracks[number]) for number in seen]
    return [number for number, track in own if track.native_id == trace.processes[track.process].pid]


class Program(NamedTuple):
    """When the program of a thread began and ended, and the windows in which its process was recorded."""

    began_ns: int
    ended_ns: int
    windows: tuple[tuple[int, int], ...]


def program_of(trace: Trace, track: int) -> Program:
    """The program of a thread. It began when the profiler had started: its time for marks comes later."""
    facts = facts_by_process(trace)
    if not facts:
        return Program(trace.began_ns, trace.ended_ns, trace.windows)
    own = facts[int(trace.processes_of(np.array([track], np.int32))[0])]
    starting_ns = max(own.own_ns - sum(times.profiler_ns for _, times in own.outside or ()), 0)
    return Program(own.began_ns + starting_ns, own.ended_ns, own.windows)


def _take(trace: Trace, time: Outside, times: Int64, rows: Int64, facts: ProcessFacts) -> None:
    """Take the profiler's time from `rows` of `times`, in place."""
    lines, tree = dict(facts.outside or ()), trace.stacks
    innermost = [(None, False)] if tree is None else MarkedLines(lines, trace.line_stacks).innermost(tree)
    number = {line: place for place, line in enumerate(lines)}
    of_row = np.array([number.get(line, -1) if line else -1 for line, _ in innermost], np.int32)[time.stack[rows]]
    runs_itself = np.array([itself for _, itself in innermost], np.bool_)[time.stack[rows]]
    before = times.copy()
    for line, (*_, profiler_ns) in lines.items():
        on_line = of_row == number[line]
        left_ns = _less(times[0], rows[on_line & runs_itself], profiler_ns)
        _less(times[0], rows[on_line & ~runs_itself], left_ns)
    for track in marked_tracks(trace, time.track[rows], of_row >= 0):
        ops = np.flatnonzero(counted_ops(trace) & ~trace.is_async & (trace.track == track))
        in_ops_ns = covered_length(trace.start_ns[ops], trace.end_ns[ops])
        wall_ns = sum(ended_ns - began_ns for began_ns, ended_ns in facts.windows)
        is_own = time.track[rows] == track
        own, outside_lines = rows[is_own], rows[is_own & (of_row < 0)]
        if not times[:, own].any():
            times[:, own] = before[:, own]
        # The profiler's start and end are in no line, and it computes: threads that wait do nothing for it.
        more_ns = int(times[:, own].sum()) - max(wall_ns - facts.own_ns - in_ops_ns, 0)
        if more_ns > 0:
            more_ns = _less(times[0], outside_lines, more_ns)
        _less(times[1], own, _less(times[0], own, more_ns))


def _less(values: Int64, rows: Int64, ns: int) -> int:
    """Take up to `ns` from the values at `rows`, from each the same share; returns how much could not be taken.

    Below 0, `ns` is added.
    """
    whole = int(values[rows].sum())
    kept = max(whole - ns, 0)
    if whole:
        values[rows] = scaled(values[rows], kept)
    return ns - (whole - kept)


def scaled(values: Int64, whole: int) -> Int64:
    """Whole numbers in the proportions of `values`, whose sum is `whole`; 0 where all values are."""
    ends = np.rint(np.cumsum(values) * (whole / max(int(values.sum()), 1))).astype(np.int64)
    parts: Int64 = np.diff(ends, prepend=np.int64(0))
    return parts
