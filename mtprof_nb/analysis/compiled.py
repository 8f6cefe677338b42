"""Compilations of a recording, graph breaks, and a sentence about both."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

import numpy as np

from mtprof_nb.analysis import units
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.analysis.program_time.recorded_time import program_ns
from mtprof_nb.analysis.summary import summary
from mtprof_nb.model.compilations import (
    AGAIN,
    CUDA_GRAPH,
    FIRST_BACKWARD,
    FIRST_CALL,
    Compilation,
    GraphBreak,
)
from mtprof_nb.model.source_files import is_user_file, line_label
from mtprof_nb.model.trace import SourceLine, Trace

#: The sort of a change in torch's reason to compile again, and the sentence of it.
_MISMATCH = re.compile(
    r"tensor '(?:L\[['\"])?([^'\"]+)(?:['\"]\])?' "
    r"(size|stride|dtype|rank|requires_grad)\w* mismatch"
)
_CHANGED = {
    "size": "changed its size",
    "stride": "changed its strides",
    "dtype": "changed its dtype",
    "rank": "changed its number of dimensions",
    "requires_grad": "changed requires_grad",
}
_WORDS = {FIRST_CALL: "first call", FIRST_BACKWARD: "first backward pass", CUDA_GRAPH: "CUDA graph"}
#: Characters of a reason in a sentence.
_LONGEST_REASON = 90
#: The part of a name that torch gives a function after a graph break.
_RESUMED = re.compile(r"^torch_dynamo_resume_in_(.+)_at_\d+$")


class Compiled(NamedTuple):
    """A compilation and its event: a position in the trace, its time, and the line that called."""

    facts: Compilation
    event: int
    duration_ns: int
    line: SourceLine | None


@once_a_trace
def compilations(trace: Trace) -> tuple[Compiled, ...]:
    """All compilations in the order of time."""
    if trace.compilation is None:
        return ()
    caused = attribution(trace)
    rows = np.flatnonzero(trace.compilation >= 0).tolist()
    return tuple(
        Compiled(
            trace.compilations[trace.compilation.item(row)],
            row,
            trace.duration_ns.item(row),
            caused.lines[caused.line.item(row)] if caused.line.item(row) >= 0 else None,
        )
        for row in rows
    )


@once_a_trace
def graph_breaks(trace: Trace) -> tuple[GraphBreak, ...]:
    """The graph breaks of all compilations, each once, those of the user's files first."""
    counts: Counter[GraphBreak] = Counter()
    for one in compilations(trace):
        for broken in one.facts.breaks:
            counts[broken._replace(times=1)] += broken.times
    found = [broken._replace(times=times) for broken, times in counts.items()]
    return tuple(sorted(found, key=lambda broken: not is_user_file(broken.file)))


def function_of(facts: Compilation) -> str:
    """The function by its own name, which torch changes for the rest after a graph break."""
    found = _RESUMED.match(facts.function)
    return f"{found[1]}, after a graph break" if found else facts.function


def why_again(reason: str) -> str:
    """Torch's reason in a few words, as "`x` changed its size"; others as they are."""
    found = _MISMATCH.search(reason)
    if found:
        return f"`{found[1]}` {_CHANGED[found[2]]}"
    return reason if len(reason) <= _LONGEST_REASON else f"{reason[:_LONGEST_REASON]}…"


@once_a_trace
def compiled_sentence(trace: Trace) -> str:
    """As "3 s of 4 s are compiling: 1 first call, 1 again because `x` changed its size."."""
    if not compilations(trace):
        return ""
    compiling_ns = summary(trace).phases_ns["compiling"]
    spent = f"{units.duration(compiling_ns)} of {units.duration(program_ns(trace))} are compiling"
    causes = ", ".join((*_first_times(trace), *_again(trace)))
    places = [_place(trace, one.file, one.line) for one in graph_breaks(trace)]
    broken = units.plural(len(places), "graph break")
    breaks = f"; {broken} ({', '.join(places[:3])}{', …' * (len(places) > 3)})" if places else ""
    return f"{spent}: {causes}{breaks}."


def _first_times(trace: Trace) -> list[str]:
    counts = Counter(one.facts.cause for one in compilations(trace) if one.facts.cause in _WORDS)
    return [
        f"{count} first backward passes"
        if cause == FIRST_BACKWARD and count > 1
        else units.plural(count, _WORDS[cause])
        for cause, count in counts.items()
    ]


def _again(trace: Trace) -> list[str]:
    again = [one for one in compilations(trace) if one.facts.cause == AGAIN]
    if not again:
        return []
    (reason, _), *others = Counter(why_again(one.facts.reason) for one in again).most_common()
    first = next(one for one in again if why_again(one.facts.reason) == reason)
    because = f" because {reason}" if reason else ""
    more = f" and for {units.plural(len(others), 'more reason')}" if others else ""
    place = _place(trace, first.facts.file, first.facts.line)
    return [f"{len(again)} again{because}{more} ({place})"]


def _place(trace: Trace, file: str, line: int) -> str:
    return line_label(trace, file, line) if file else "?"
