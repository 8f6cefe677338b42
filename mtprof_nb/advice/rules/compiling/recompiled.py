"""Functions that were compiled again and again, because something about their inputs changed."""

from __future__ import annotations

from collections import defaultdict

from mtprof_nb.advice.finding import CERTAIN, LIKELY, Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.compiled import Compiled, compilations, function_of, why_again
from mtprof_nb.model.compilations import AGAIN, FIRST_CALL
from mtprof_nb.model.trace import SourceLine, Trace

#: A function is worth a word from this number of compilations after its first on.
_LEAST_AGAIN = 2
_OF_SIZES = """\
compiled = torch.compile(model, dynamic=True)  # one graph for all sizes; or, for one dimension:
torch._dynamo.mark_dynamic(x, 0)  # before the call; or give all batches one size"""
_OF_OTHERS = """\
# keep constant what torch's reason names, or pass it as a tensor"""
_COMPILED_IN_LOOP = """\
compiled = torch.compile(f)  # once, before the loop
for x in batches:
    compiled(x)"""


@rule
def recompiled(trace: Trace) -> Finding | None:
    """Find the function whose two or more compilations after its first took longest."""
    by_function: dict[tuple[str, int, str], list[Compiled]] = defaultdict(list)
    for one in compilations(trace):
        if one.facts.cause == AGAIN:
            by_function[one.facts.file, one.facts.line, one.facts.function].append(one)
    often = [again for again in by_function.values() if len(again) >= _LEAST_AGAIN]
    if not often:
        return None
    again = max(often, key=lambda some: sum(one.duration_ns for one in some))
    facts, spent_ns = again[0].facts, _with_backward_ns(trace, again)
    of_sizes = all("size mismatch" in one.facts.reason for one in again)
    return Finding(
        "A compiled function is compiled again and again",
        f"`{function_of(facts)}` was compiled {units.plural(len(again), 'time')} more, in "
        f"{units.duration(spent_ns)}, because {why_again(again[0].facts.reason)} "
        f"({again[0].facts.reason}).",
        _OF_SIZES if of_sizes else _OF_OTHERS,
        line=SourceLine(facts.file, facts.line) if facts.file else None,
        at_most_ns=spent_ns,
        certainty=CERTAIN if of_sizes else LIKELY,
    )


def _with_backward_ns(trace: Trace, again: list[Compiled]) -> int:
    """The time of these compilations, and of those of their backward passes."""
    numbers = {one.facts.compile_id for one in again}
    return sum(one.duration_ns for one in compilations(trace) if one.facts.compile_id in numbers)


@rule
def compiled_in_loop(trace: Trace) -> Finding | None:
    """Find a function that one line compiled for the first time three times or more."""
    by_function: dict[tuple[str, int, str], list[Compiled]] = defaultdict(list)
    for one in compilations(trace):
        if one.facts.cause == FIRST_CALL and one.facts.file and one.line is not None:
            by_function[one.facts.file, one.facts.line, one.facts.function].append(one)
    many = [some for some in by_function.values() if len(some) > _LEAST_AGAIN]
    often = [some for some in many if len({one.line for one in some}) == 1]
    if not often:
        return None
    firsts = max(often, key=lambda some: sum(one.duration_ns for one in some))
    spent_ns = sum(one.duration_ns for one in firsts[1:])
    return Finding(
        "`torch.compile` is called again for the same function",
        f"`{function_of(firsts[0].facts)}` was compiled {len(firsts)} times as if it were new; all "
        f"but the first took {units.duration(spent_ns)}.",
        _COMPILED_IN_LOOP,
        line=firsts[0].line,
        at_most_ns=spent_ns,
    )
