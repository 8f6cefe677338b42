"""The rank that the others wait for, with the evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mtprof_nb.analysis import units
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.analysis.ranks.matched_calls import MatchedCalls, matched_calls
from mtprof_nb.analysis.ranks.rank_figures import rank_figures, waited_for_ns
from mtprof_nb.analysis.ranks.rank_lines import TimesByProcess, line_times_by_process, op_times_by_process
from mtprof_nb.analysis.ranks.ranked_processes import titles
from mtprof_nb.errors import LONGEST_SENTENCE, shown
from mtprof_nb.model.source_files import line_label
from mtprof_nb.model.trace import SourceLine, Trace

#: The others wait for it at least this share of the time that was recorded.
_LEAST_SHARE = 0.05
#: The others wait at least this many times as long for it as for any other rank.
_LEAST_LEAD = 2.0
#: A straggler comes last at least this many times as often as by chance; among few ranks, in half of the calls.
_LEAST_OFTEN = 2.0
#: A line is named if it explains this share of the waiting, and takes this many times as long as elsewhere.
_LEAST_EXPLAINED = 0.2
_LEAST_RATIO = 1.2
#: Below this share of its time, a line takes next to nothing on the other ranks.
_NOTHING = 0.05
_OUTSIDE = "time outside ops"


@dataclass(frozen=True)
class Slower:
    """A line, an op, or the time outside ops, that takes longer on one rank than on the others."""

    #: The line; None if it is no line.
    line: SourceLine | None
    #: `Cell [3]:12`, the name of the op, or `time outside ops`.
    where: str
    #: Its time there, and the median of the other ranks.
    time_ns: int
    elsewhere_ns: int

    def __str__(self) -> str:
        if self.elsewhere_ns < _NOTHING * self.time_ns:
            return f"{self.where} takes {units.duration(self.time_ns)} there, and next to nothing elsewhere"
        slower = "longer" if self.where == _OUTSIDE else "slower"
        return f"{self.where} is {self.time_ns / self.elsewhere_ns:.1f} × {slower} there"


@dataclass(frozen=True)
class Straggler:
    """The rank that the others waited for. Its text is the evidence."""

    #: -1 for a process without a rank.
    rank: int
    #: `rank 3`.
    title: str
    #: In how many of the collectives it came last.
    came_last: int
    collectives: int
    #: `all-reduces`, or `collectives` where there are several kinds.
    kind: str
    #: How long each of the others waited for it, on average.
    waited_for_ns: int
    #: The line or op that explains it, None if none does.
    slower: Slower | None

    def __str__(self) -> str:
        last = f"{self.title} came last in {self.came_last} of {self.collectives} {self.kind}"
        waited = f"the others waited {units.duration(self.waited_for_ns)} for it"
        return shown("; ".join([last, waited, *([str(self.slower)] if self.slower else [])]), LONGEST_SENTENCE)


@once_a_trace
def straggler(trace: Trace) -> Straggler | None:
    """The rank that the others waited for; None if they waited for none, or for several in turn."""
    calls, waited_for = matched_calls(trace), waited_for_ns(trace)
    if len(waited_for) < 2 or not waited_for.any():
        return None
    number = int(waited_for.argmax())
    counted = calls.is_meeting & calls.is_there[:, number]
    took_part, came_last = int(counted.sum()), int((calls.last == number).sum())
    waited = int(waited_for[number])
    second = int(np.delete(waited_for, number).max())
    often = min(0.5, _LEAST_OFTEN / len(waited_for)) * took_part
    wall = max(row.wall_ns for row in rank_figures(trace))
    if waited < _LEAST_SHARE * wall or waited < _LEAST_LEAD * second or came_last < often:
        return None
    return Straggler(
        rank=trace.processes[number].rank,
        title=titles(trace)[number],
        came_last=came_last,
        collectives=took_part,
        kind=_kind(calls, counted),
        waited_for_ns=waited,
        slower=_slower(trace, number, waited),
    )


def _kind(calls: MatchedCalls, counted: Any) -> str:
    names = {calls.keys[place].title for place in np.flatnonzero(counted).tolist()}
    return f"{names.pop().replace('_', '-')}s" if len(names) == 1 else "collectives"


def _slower(trace: Trace, number: int, waited_ns: int) -> Slower | None:
    """The line with the most time beyond the other ranks' median; if none explains it, the op, or the time outside."""
    if slower := _most_beyond(line_times_by_process(trace), number, waited_ns):
        line, time_ns, elsewhere_ns = slower
        return Slower(line, line_label(trace, *line), time_ns, elsewhere_ns)
    # Rows are in the order of ranks.
    outside = {row.title: row.outside_ns for row in rank_figures(trace)}
    times = np.array([[outside[title] for title in titles(trace)]], np.int64)
    named = _most_beyond(op_times_by_process(trace), number, waited_ns)
    named = named or _most_beyond(TimesByProcess((_OUTSIDE,), times), number, waited_ns)
    return Slower(None, *named) if named else None


def _most_beyond(times: TimesByProcess[Any], number: int, waited_ns: int) -> tuple[Any, int, int] | None:
    if not len(times.entries):
        return None
    own = times.time_ns[:, number]
    others = np.median(np.delete(times.time_ns, number, axis=1), axis=1)
    place = int((own - others).argmax())
    beyond = own[place] - others[place]
    if beyond < _LEAST_EXPLAINED * waited_ns or own[place] < _LEAST_RATIO * others[place]:
        return None
    return times.entries[place], int(own[place]), int(others[place])
