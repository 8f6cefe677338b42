"""Time in the `next` of a DataLoader, and in starting its workers."""

from __future__ import annotations

from math import ceil

from mtprof_nb.advice.causes.preparations import STARTING_WORKERS, preparation_ns
from mtprof_nb.advice.causes.recorded_threads import recorded_threads
from mtprof_nb.advice.causes.sampled_lines_during import sampled_lines_during
from mtprof_nb.advice.causes.source_text import lines_of_functions
from mtprof_nb.advice.finding import CERTAIN, LIKELY, Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.program_time.data_loading import during, loader_calls
from mtprof_nb.analysis.program_time.recorded_time import line_times, of_recorded
from mtprof_nb.analysis.program_time.recording_cost import recording_ns
from mtprof_nb.model.trace import Int64, SourceLine, Trace

_ALONE = "_SingleProcess"
#: Starting workers is the finding from this share of the waiting on.
_OFTEN_STARTED = 0.2
#: To start a worker takes about so long, and to fetch a batch from one: measured 6 to 30 ms, and 0.1 to 3 ms.
_START_NS, _FETCH_NS = 10_000_000, 300_000
#: The least part of a batch's time that workers have to save, and the most workers that are advised.
_LEAST_SAVED, _MOST_WORKERS = 0.25, 4
#: The time that recording added is reported from this share of the waiting on.
_REPORTED = 0.05
_FIX_BATCHES = """\
# worker processes would save less than they cost here: less work on this line, or all items of a batch at once
loader = DataLoader(dataset, sampler=BatchSampler(RandomSampler(dataset), 64, False), batch_size=None)
# or a method __getitems__(self, indices) of the dataset; of tensors in memory: batch = data[order[i : i + 64]]"""
_FIX_ALONE = """\
# less work on this line, or worker processes, {room}; they pay from about {pay} batches on
loader = DataLoader(dataset, batch_size=…, num_workers={workers}, persistent_workers=True)"""
_FIX_WORKERS = """\
# less work for each item: recorded once with num_workers=0, its lines are shown
# or workers that stay between epochs, or more of them, {room}
loader = DataLoader(dataset, batch_size=…, num_workers={workers}, prefetch_factor=4, persistent_workers=True)"""
_FIX_STARTED = """\
# each loop over the loader starts its workers anew: keep them, or do without them if an item takes little time
loader = DataLoader(dataset, batch_size=…, num_workers=…, persistent_workers=True)  # or num_workers=0"""


@rule
def waits_for_input(trace: Trace) -> Finding | None:
    """Find a program that waits for its DataLoader; the line is the slowest one that the DataLoader calls.

    The time to record ops of the DataLoader does not count.
    """
    calls = loader_calls(trace)
    if not len(calls):
        return None
    inside, next_ns = during(trace, calls), int(trace.duration_ns[calls].sum())
    recording = min(recording_ns(trace, inside, at_least=False), next_ns)
    alone = any(_ALONE in trace.names[name] for name in set(trace.name[calls].tolist()))
    starting_ns = 0 if alone else preparation_ns(trace).get(STARTING_WORKERS, 0)
    if next_ns - recording + starting_ns <= 0:
        return None
    is_started = starting_ns >= _OFTEN_STARTED * (next_ns + starting_ns) > 0
    started = f"; starting its workers takes {units.duration(starting_ns)}" if starting_ns else ""
    if recording > _REPORTED * next_ns:
        started += f"; recording them took about {units.duration(recording)} more"
    workers = "without worker processes" if alone else "with worker processes"
    return Finding(
        "The program waits for its DataLoader",
        f"{units.plural(len(calls), 'call')} of the DataLoader's next, {workers}, take "
        f"{of_recorded(trace, next_ns - recording)}{started}.",
        _FIX_STARTED if is_started else _fix(trace, alone, (next_ns - recording) / len(calls)),
        _slowest_inside(trace, calls),
        found_ns=next_ns - recording + starting_ns,
        at_most_ns=next_ns - recording_ns(trace, inside) + starting_ns,
        certainty=CERTAIN if is_started else LIKELY,  # more workers can make it slower
    )


def _fix(trace: Trace, alone: bool, batch_ns: float) -> str:
    """Fewer calls where a batch takes little time, else workers, not more than there are cores."""
    counts = recorded_threads(trace)
    cores = min(counts.cores, _MOST_WORKERS) if counts else 0
    if not alone:
        room = f"at most one for each of the {counts.cores} cores" if counts else "one for each free core"
        return _FIX_WORKERS.format(room=room, workers=cores or "…")
    room = f"for which there are {counts.cores} cores" if counts else "one for each free core"
    saved_ns = batch_ns - max(batch_ns / (cores or _MOST_WORKERS), _FETCH_NS)
    if saved_ns < _LEAST_SAVED * batch_ns:
        return _FIX_BATCHES
    pay = ceil((cores or _MOST_WORKERS) * _START_NS / saved_ns)
    return _FIX_ALONE.format(room=room, workers=cores or "…", pay=units.number(pay))


def _slowest_inside(trace: Trace, calls: Int64) -> SourceLine | None:
    """The slowest line of the functions that `next` calls; the line of the loop if no other is known."""
    caused, times = attribution(trace), line_times(trace)
    around = {caused.lines[line] for line in caused.line[calls].tolist() if line >= 0}
    inside = {caused.lines[line] for line in caused.line[during(trace, calls)].tolist() if line >= 0} - around
    inside |= lines_of_functions(trace, inside) - around
    # Functions without ops are known from samples alone.
    starts, ends = trace.start_ns[calls], trace.end_ns[calls]
    sampled = sampled_lines_during(trace, starts, ends, trace.track[calls], was_read=True)
    inside |= {line for line in sampled if line is not None} - around
    return max(inside or around, key=lambda line: times.get(line, 0), default=None)
