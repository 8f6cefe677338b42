"""Time in the `next` of a DataLoader, and in starting its workers."""

from __future__ import annotations

from mtprof_nb.advice.finding import CERTAIN, Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.causes.data_loading import during, loader_calls
from mtprof_nb.analysis.causes.enclosing_functions import lines_of_functions
from mtprof_nb.analysis.causes.preparations import STARTING_WORKERS, preparation_ns
from mtprof_nb.analysis.causes.recorded_time import line_times, recorded_ns
from mtprof_nb.analysis.causes.sampled_lines_during import sampled_lines_during
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.model.trace import Int64, SourceLine, Trace

_ALONE = "_SingleProcess"
#: Starting workers is told from this share of the waiting on.
_OFTEN_STARTED = 0.2
_FIX_ALONE = """\
# less work on this line, or worker processes, as many as there are free cores
loader = DataLoader(dataset, batch_size=…, num_workers=4, persistent_workers=True)"""
_FIX_WORKERS = """\
# less work for each item, or more workers if there are free cores; workers that stay between epochs
loader = DataLoader(dataset, batch_size=…, num_workers=8, prefetch_factor=4, persistent_workers=True)"""
_FIX_STARTED = """\
# each loop over the loader starts its workers anew: keep them, or do without them if an item takes little time
loader = DataLoader(dataset, batch_size=…, num_workers=2, persistent_workers=True)  # or num_workers=0"""


@rule
def waits_for_input(trace: Trace) -> Finding | None:
    """Find a program that waits for its DataLoader; the line is the dearest one that the DataLoader calls."""
    calls = loader_calls(trace)
    if not len(calls):
        return None
    next_ns = int(trace.duration_ns[calls].sum())
    alone = any(_ALONE in trace.names[name] for name in set(trace.name[calls].tolist()))
    starting_ns = 0 if alone else preparation_ns(trace).get(STARTING_WORKERS, 0)
    is_started = starting_ns >= _OFTEN_STARTED * (next_ns + starting_ns) > 0
    started = f"; starting its workers takes {units.duration(starting_ns)}" if is_started else ""
    workers = "without worker processes" if alone else "with worker processes"
    return Finding(
        "The program waits for its DataLoader",
        f"{units.plural(len(calls), 'call')} of the DataLoader's next, {workers}, take {units.duration(next_ns)} "
        f"of {units.duration(recorded_ns(trace))}{started}.",
        _FIX_ALONE if alone else _FIX_STARTED if is_started else _FIX_WORKERS,
        _dearest_inside(trace, calls),
        at_most_ns=next_ns + starting_ns,
        certainty=CERTAIN,
    )


def _dearest_inside(trace: Trace, calls: Int64) -> SourceLine | None:
    """The dearest line of the functions that `next` calls; the line of the loop if no other is known."""
    caused, times = attribution(trace), line_times(trace)
    around = {caused.lines[line] for line in caused.line[calls].tolist() if line >= 0}
    inside = {caused.lines[line] for line in caused.line[during(trace, calls)].tolist() if line >= 0} - around
    inside |= lines_of_functions(trace, inside) - around
    # Functions without ops are known from samples alone.
    starts, ends = trace.start_ns[calls], trace.end_ns[calls]
    sampled = sampled_lines_during(trace, starts, ends, trace.track[calls], was_read=True)
    inside |= {line for line in sampled if line is not None} - around
    return max(inside or around, key=lambda line: times.get(line, 0), default=None)
