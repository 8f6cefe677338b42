"""Time outside ops by source line: of marked lines as the marks measured it, of all other lines from samples."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mtprof_nb.analysis.functions.thread_time import stack_time
from mtprof_nb.analysis.groups import sums
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.source_files import is_cell, is_user_file
from mtprof_nb.model.trace import OutsideOps, SourceLine, StackTree, Trace


@once_a_trace
def outside_by_line(trace: Trace) -> Mapping[SourceLine, OutsideOps] | None:
    """For each line of the user its time outside ops; None where neither marks nor samples know any.

    Time in a library belongs to the user's line that called it. Marks cannot see into functions of other files: what
    samples find there is taken from the own time of the marked line that called them.
    """
    time, tree = stack_time(trace), trace.stacks
    if time is None or tree is None:
        return trace.outside
    found = dict(trace.outside or {})
    marked = {line.file for line in found}
    chosen = time.stack >= 0
    spent_ns = sums(time.stack[chosen], (time.python_ns + time.waiting_ns)[chosen], len(tree))
    for node in np.flatnonzero(spent_ns).tolist():
        _add(found, marked, _user_lines(tree, node), int(spent_ns[node]))
    return found


def _user_lines(tree: StackTree, node: int) -> list[SourceLine]:
    """The user's lines of a stack, innermost first."""
    return [SourceLine(frame.file, frame.line) for frame in tree.stack(node) if is_user_file(frame.file)]


def _add(found: dict[SourceLine, OutsideOps], marked: set[str], lines: list[SourceLine], ns: int) -> None:
    if marked:  # the cell that calls a marked statement or script is no part of what is recorded
        lines = [line for line in lines if line.file in marked or not is_cell(line.file)]
    if not lines or lines[0].file in marked:
        return  # the marks have counted this
    unmarked = [line for line in lines if line.file not in marked]
    for line in dict.fromkeys(unmarked):
        known = found.get(line, OutsideOps(0, 0))
        found[line] = OutsideOps(known.own_ns + ns * (line == lines[0]), known.total_ns + ns)
    caller = next((line for line in lines if line.file in marked), None)
    if caller in found:
        known = found[caller]
        found[caller] = known._replace(own_ns=max(known.own_ns - ns, 0))
