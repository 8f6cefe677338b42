"""Time outside ops by source line: of marked lines as the marks measured it, of all other lines from samples."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from mtprof_nb.analysis.functions.function_costs import sample_errors
from mtprof_nb.analysis.functions.marked_lines import MarkedLines, marked_tracks, scaled
from mtprof_nb.analysis.functions.thread_time import StackTime, stack_time
from mtprof_nb.analysis.groups import sums
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.analysis.summary import outside_ops_ns
from mtprof_nb.model.source_files import is_user_file
from mtprof_nb.model.trace import Bool, Frame, OutsideOps, SourceLine, StackTree, Trace


class _Called(NamedTuple):
    """Lines without marks, innermost first, and the time for which samples saw them."""

    lines: list[SourceLine]
    ns: int


class _Divided(NamedTuple):
    """Time outside ops by line, and its errors. The error for None is for all lines without samples."""

    times: Mapping[SourceLine, OutsideOps] | None
    errors: Mapping[SourceLine | None, int | None]


def outside_by_line(trace: Trace) -> Mapping[SourceLine, OutsideOps] | None:
    """For each line of the user its time outside ops; None where neither marks nor samples know any.

    Time in a library belongs to the user's line that called it. Marks cannot see into functions without marks: what
    samples find there is taken from the own time of the marked line that called them, and is never more than that.
    """
    return _divided(trace).times


def outside_error_ns(trace: Trace, line: SourceLine) -> int | None:
    """By how much the own time of `line` outside ops may be wrong: 0 where marks measured it, None if not known."""
    errors = _divided(trace).errors
    return errors.get(line, errors.get(None))


@once_a_trace
def _divided(trace: Trace) -> _Divided:
    time, tree = stack_time(trace), trace.stacks
    if time is None or tree is None:
        return _Divided(trace.outside, dict.fromkeys(trace.outside or {}, 0))
    outside, marked = dict(trace.outside or {}), MarkedLines(trace.outside or {}, trace.line_stacks)
    called: defaultdict[SourceLine, list[_Called]] = defaultdict(list)
    seen_ns: Counter[SourceLine | None] = Counter()
    awaited: list[_Called] = []
    elsewhere: list[_Called] = []
    is_on_marked = _is_on_marked_thread(trace, time, tree, marked)
    chosen = time.stack >= 0
    column = time.stack[chosen].astype(np.int64) * 2 + is_on_marked[chosen]
    spent_ns = sums(column, (time.python_ns + time.waiting_ns)[chosen], len(tree) * 2).reshape(-1, 2)
    own: dict[int, SourceLine] = {}
    taken: dict[int, SourceLine] = {}
    for node, is_on_marked_thread in np.argwhere(spent_ns).tolist():
        frames = [frame for frame in tree.stack(node) if is_user_file(frame.file) and not marked.is_around(frame)]
        caller, lines = _without_marks(marked, frames)
        one = _Called(lines, int(spent_ns[node, is_on_marked_thread]))
        seen_ns[caller] += one.ns
        if lines:
            own[node * 2 + is_on_marked_thread] = lines[0]
        if lines and caller in outside:
            called[caller].append(one)
            taken[node * 2 + is_on_marked_thread] = caller
        elif lines:
            (awaited if is_on_marked_thread else elsewhere).append(one)
    # A line that awaits others is not on their stacks: samples saw it for less time than its marks measured.
    unseen = {line: times.own_ns - seen_ns[line] for line, times in outside.items() if times.own_ns > seen_ns[line]}
    in_no_line_ns = (outside_ops_ns(trace) or 0) - sum(times.own_ns for times in outside.values())
    errors: dict[SourceLine | None, int | None] = dict.fromkeys(outside, 0)
    if awaited:  # it is not known which of these lines awaited them
        errors |= dict.fromkeys(unseen, None)
    errors |= {line: error for line, error in _errors(time, is_on_marked, taken).items() if line in taken.values()}
    errors |= {line: error for line, error in _errors(time, is_on_marked, own).items() if line not in errors}
    for caller, stacks in called.items():
        _add(outside, stacks, {caller: outside[caller].own_ns}, 0)
    _add(outside, awaited, unseen, max(in_no_line_ns, 0))
    _add(outside, elsewhere, {}, None)
    return _Divided(outside, errors)


def _errors(
    time: StackTime, is_on_marked: Bool, line_of: Mapping[int, SourceLine]
) -> dict[SourceLine | None, int | None]:
    """The error of each line's time; under None, for a line without samples. `line_of` has the line of each stack."""
    number = {line: place for place, line in enumerate(dict.fromkeys(line_of.values()))}
    place = np.full(2 * int(time.stack.max(initial=0)) + 4, len(number), np.int32)  # the last two are for no stack
    place[list(line_of)] = [number[line] for line in line_of.values()]
    errors = sample_errors(
        time, time.python_ns + time.waiting_ns, place[time.stack * 2 + is_on_marked], len(number) + 2
    )
    known = [None if np.isnan(error) else round(error) for error in errors.tolist()]
    return {**dict(zip(number, known, strict=False)), None: known[-1]}


def _is_on_marked_thread(trace: Trace, time: StackTime, tree: StackTree, marked: MarkedLines) -> Bool:
    """For each row whether it is of a thread with marked lines."""
    is_marked = np.array([line is not None for line, _ in marked.innermost(tree)], np.bool_)[time.stack]
    process, tracks = trace.processes_of(time.track), []
    for number in np.unique(process).tolist() if trace.outside else ():
        rows = process == number
        tracks += marked_tracks(trace, time.track[rows], is_marked[rows])
    return np.isin(time.track, tracks)


def _without_marks(marked: MarkedLines, frames: list[Frame]) -> tuple[SourceLine | None, list[SourceLine]]:
    """The innermost marked line of a stack, and the lines without marks that it called; [] if marks counted these."""
    measured = [line for frame in frames if (line := marked.statement(frame))]
    inner = [SourceLine(*frame[:2]) for frame in takewhile(lambda frame: not marked.statement(frame), frames)]
    is_counted = not inner or inner[0] in measured
    lines = [] if is_counted else [line for line in dict.fromkeys(inner) if line not in measured]
    return next(iter(measured), None), lines


def _add(
    outside: dict[SourceLine, OutsideOps], stacks: list[_Called], rooms: dict[SourceLine, int], free_ns: int | None
) -> None:
    """Add the time of stacks to their lines: up to `free_ns`, and then what is taken from lines that have room for it.

    None for `free_ns`: all of it.
    """
    times = np.array([one.ns for one in stacks], np.int64)
    if free_ns is not None:
        room = np.array(list(rooms.values()), np.int64)
        times = scaled(times, min(int(times.sum()), free_ns + int(room.sum())))
        taken = scaled(room, max(int(times.sum()) - free_ns, 0))
        for line, ns in zip(rooms, taken.tolist(), strict=True):
            outside[line] = outside[line]._replace(own_ns=outside[line].own_ns - ns)
    for one, ns in zip(stacks, times.tolist(), strict=True):
        for line in one.lines:
            known = outside.get(line, OutsideOps(0, 0))
            own_ns = known.own_ns + ns * (line == one.lines[0])
            outside[line] = known._replace(own_ns=own_ns, total_ns=known.total_ns + ns)
