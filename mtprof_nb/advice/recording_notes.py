"""Notes with the findings: where a recording shows the profiler rather than the program."""

from __future__ import annotations

from mtprof_nb.analysis import units
from mtprof_nb.analysis.program_time.recorded_time import recorded_ns
from mtprof_nb.analysis.program_time.recording_cost import between_ops
from mtprof_nb.analysis.summary import coverage_notes
from mtprof_nb.model.trace import PYTHON, Trace

#: The share of the gaps between ops, and of the recorded time, from which on a note is worth a word.
_OF_GAPS, _OF_TIME = 0.5, 0.1
_NO_CALLS = 'record without with_stack, or with hook="native"; with_python=True samples Python code at little cost'
_FEWER_FACTS = "record fewer facts: each of record_shapes, profile_memory and with_stack takes time for each op"
_LESS = "nothing records less: compare times of the program without a profiler"


def advice_notes(trace: Trace) -> tuple[str, ...]:
    """Sentences that a reader of the findings has to know; empty if the recording is as it should be."""
    return (*coverage_notes(trace), *_notes_on_gaps(trace))


def _notes_on_gaps(trace: Trace) -> tuple[str, ...]:
    if not trace.has_all_ops or len(trace.processes) > 1:
        return ()
    gaps_ns, recording_ns = between_ops(trace)
    if recording_ns < max(_OF_GAPS * gaps_ns, _OF_TIME * recorded_ns(trace), 1):
        return ()
    return (
        "Most of the time between ops is the profiler's own: "
        f"at least {units.duration(recording_ns)} of {units.duration(gaps_ns)} in the short gaps between ops, "
        f"{units.duration(recorded_ns(trace))} in all. To see the time of the program, {_remedy(trace)}.",
    )


def _remedy(trace: Trace) -> str:
    recorded = trace.recorded
    if (trace.kind == PYTHON).any():
        return _NO_CALLS
    return _FEWER_FACTS if recorded.record_shapes or recorded.profile_memory or recorded.with_stack else _LESS
