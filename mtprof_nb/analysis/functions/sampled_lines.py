"""Time outside ops by source line: of marked lines as the marks measured it, of all other lines from samples."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from itertools import takewhile

import numpy as np

from mtprof_nb.analysis.functions.thread_time import stack_time
from mtprof_nb.analysis.groups import sums
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.source_files import is_cell, is_user_file
from mtprof_nb.model.trace import Frame, OutsideOps, SourceLine, Trace

_TOP_LEVEL = "<module>"


@once_a_trace
def outside_by_line(trace: Trace) -> Mapping[SourceLine, OutsideOps] | None:
    """For each line of the user its time outside ops; None where neither marks nor samples know any.

    Time in a library belongs to the user's line that called it. Marks cannot see into functions without marks: what
    samples find there is taken from the own time of the marked line that called them.
    """
    time, tree = stack_time(trace), trace.stacks
    if time is None or tree is None:
        return trace.outside
    found, marked = dict(trace.outside or {}), _MarkedLines(trace)
    chosen = time.stack >= 0
    spent_ns = sums(time.stack[chosen], (time.python_ns + time.waiting_ns)[chosen], len(tree))
    for node in np.flatnonzero(spent_ns).tolist():
        frames = [frame for frame in tree.stack(node) if is_user_file(frame.file) and not marked.is_around(frame)]
        _add(found, marked, frames, int(spent_ns[node]))
    return found


class _MarkedLines:
    """The functions whose lines were marked, and these lines: marks have measured their time."""

    def __init__(self, trace: Trace) -> None:
        lines = trace.outside or {}
        frames = trace.line_stacks.frames if lines and trace.line_stacks is not None else ()
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


def _add(found: dict[SourceLine, OutsideOps], marked: _MarkedLines, frames: list[Frame], ns: int) -> None:
    """Add the time of a stack, innermost frame first, to its lines without marks."""
    measured = [line for frame in frames if (line := marked.statement(frame))]
    inner = [SourceLine(*frame[:2]) for frame in takewhile(lambda frame: not marked.statement(frame), frames)]
    if not inner or inner[0] in measured:
        return  # the marks have counted this
    for line in dict.fromkeys(inner):
        if line not in measured:
            known = found.get(line, OutsideOps(0, 0))
            found[line] = OutsideOps(known.own_ns + ns * (line == inner[0]), known.total_ns + ns)
    if measured and measured[0] in found:
        known = found[measured[0]]
        found[measured[0]] = known._replace(own_ns=max(known.own_ns - ns, 0))
