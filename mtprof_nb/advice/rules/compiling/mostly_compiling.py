"""Recordings that show the compiler rather than the program, and graphs that break."""

from __future__ import annotations

from mtprof_nb.advice.finding import CERTAIN, Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.advice.rules.compiling.recompiled import compiled_in_loop
from mtprof_nb.analysis import units
from mtprof_nb.analysis.compiled import compilations, graph_breaks
from mtprof_nb.analysis.program_time.recorded_time import program_ns
from mtprof_nb.analysis.summary import summary
from mtprof_nb.model.compilations import AGAIN
from mtprof_nb.model.source_files import is_user_file
from mtprof_nb.model.trace import SourceLine, Trace

_MOSTLY = 0.5
_AGAIN = """\
# run the cell again: what is compiled stays compiled while this process lives"""
_OF_BREAKS = "move this line out of the compiled function"
_OF_CUDA_GRAPHS = """\
# change what torch's reason names, or leave out mode="reduce-overhead" """


@rule
def mostly_compiling(trace: Trace) -> Finding | None:
    """Find a recording of which more than half is compiling for the first time."""
    firsts = [one for one in compilations(trace) if one.facts.cause != AGAIN]
    spent_ns, whole_ns = sum(one.duration_ns for one in firsts), program_ns(trace)
    compiling_ns = summary(trace).phases_ns["compiling"]
    if spent_ns <= _MOSTLY * whole_ns or compiled_in_loop(trace) is not None:
        return None
    return Finding(
        "The recording is mostly of compiling, not of the program",
        f"{units.duration(compiling_ns)} of {units.duration(whole_ns)} are compiling, in "
        f"{units.plural(len(firsts), 'compilation')}: run it again to see the program itself.",
        _AGAIN,
        line=firsts[0].line,
        at_most_ns=min(spent_ns, compiling_ns),
        certainty=CERTAIN,
    )


@rule
def graph_break(trace: Trace) -> Finding | None:
    """Find the graph break in the user's code whose function took longest to compile in parts."""
    found = [one for one in graph_breaks(trace) if is_user_file(one.file)]
    if not found:
        return None
    first = max(found, key=lambda one: one.times)
    spent_ns = sum(
        one.duration_ns
        for one in compilations(trace)
        if one.facts.function.startswith("torch_dynamo_resume_in_")
        and (one.facts.file, one.facts.line) == (first.file, first.line)
    )
    if not spent_ns:
        return None
    others = f" {units.plural(len(found) - 1, 'more line')} break graphs." if len(found) > 1 else ""
    return Finding(
        "A graph breaks, and its rest is compiled by itself",
        f"{first.reason}. Compiling what follows took {units.duration(spent_ns)}, and nothing is "
        f"fused across the break.{others}",
        f"# {first.first_hint or first.explanation or _OF_BREAKS}",
        line=SourceLine(first.file, first.line),
        at_most_ns=spent_ns,
    )


@rule
def cuda_graphs_skipped(trace: Trace) -> Finding | None:
    """Find compiled code that was to run as CUDA graphs, and does not; torch names the reason."""
    skipped = [one for one in compilations(trace) if one.facts.cuda_graph_skipped]
    if not skipped:
        return None
    facts = skipped[0].facts
    return Finding(
        "CUDA graphs were asked for, and are not used",
        f"{facts.cuda_graph_skipped} This is so for {units.plural(len(skipped), 'compilation')}.",
        _OF_CUDA_GRAPHS.rstrip(),
        line=SourceLine(facts.file, facts.line) if facts.file else None,
        at_most_ns=program_ns(trace) - summary(trace).phases_ns["compiling"],
    )
