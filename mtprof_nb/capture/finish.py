"""Makes the finished `Trace` of a stopped window: merges the hooks' events, then adds steps, lines and texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mtprof_nb.building.allocator_records import held_around, of_recording
from mtprof_nb.capture.async_scopes import OpenScope, mark_interleaved
from mtprof_nb.capture.collector_watch import WatchedCollections, with_collections
from mtprof_nb.capture.compile_watch import WatchedCompilations, with_compilations
from mtprof_nb.capture.compiled.opened_regions import open_regions
from mtprof_nb.capture.hook import EventTimes, Request, full
from mtprof_nb.capture.registry import HOOK_KINDS, SCOPES_ALONE, HookKind, default_hooks
from mtprof_nb.capture.samples.sampled_stacks import SampledStacks, sampled_from, with_samples
from mtprof_nb.capture.source_texts import sources
from mtprof_nb.errors import warn
from mtprof_nb.model.bookkeeping import PYTHON_CALL_NS
from mtprof_nb.model.intervals import order_of
from mtprof_nb.model.merge import merge
from mtprof_nb.model.trace import PYTHON, SCOPE, Columns, Int32, Int64, StepStarts, Trace, Unrecorded, taken
from mtprof_nb.model.tracks import with_metadata

#: Stands for the number of a step where a loop over `steps()` has ended.
NO_STEP = -1


@dataclass(frozen=True)
class StoppedWindow:
    """The traces of a window's hooks, and when the window began and ended."""

    request: Request
    traces: Mapping[str, Trace]
    #: Names of the hooks, for the user.
    hooks: tuple[str, ...]
    #: By the clock of the session.
    began_ns: int
    ended_ns: int
    #: How long it took to start the hooks.
    start_ns: int
    #: Whether activities were left out on purpose.
    is_partial: bool
    #: Samples of Python stacks, None where none were asked for.
    samples: SampledStacks | None = None
    #: When the sampler began, where that was later than the window.
    sampled_from_ns: int | None = None
    collections: WatchedCollections | None = None
    compilations: WatchedCompilations | None = None


def finish(
    window: StoppedWindow,
    steps: Sequence[tuple[int, int]],
    interleaved: Sequence[OpenScope],
    *,
    label: str = "",
    metadata: Mapping[str, str] | None = None,
    annotate: Callable[[Trace, EventTimes], Columns] | None = None,
) -> Trace:
    """One trace of all hooks' events, with steps, label, metadata, the lines of `annotate` and source texts.

    `steps` has the number of each step and when it began, by the clock of the session.
    """
    if set(window.traces) == {SCOPES_ALONE.name}:
        runtimes = ", ".join(dict.fromkeys(kind.runtime for kind in default_hooks()))
        warn(f"no tensor runtime is imported, so only scopes were recorded: import one of {runtimes}")
    began_ns, ended_ns = window.began_ns, window.ended_ns
    traces = list(window.traces.values())
    cut = _cut(traces, window.request.max_events, ended_ns)
    parts = traces if cut is None else [_complete_until(cut.began_ns, part) for part in traces]
    ended_ns = ended_ns if cut is None else cut.began_ns
    trace = _until(ended_ns, _merged(parts))
    offset_ns = window.request.clock.offset_ns
    event_times: EventTimes = lambda ns: ns + offset_ns  # noqa: E731
    if window.compilations is not None:
        trace = with_compilations(trace, window.compilations, event_times, ended_ns)
    kinds = [HOOK_KINDS.get(name, SCOPES_ALONE) for name in window.traces]
    costs_ns = [_cost_ns(kind, part) for kind, part in zip(kinds, parts, strict=True)]
    step_starts = tuple((began, number) for number, began in steps)
    trace = replace(
        trace,
        step=_steps(trace.start_ns, step_starts),
        is_async=mark_interleaved(trace, interleaved),
        processes=with_metadata(trace.processes, metadata or {}),
        hooks=window.hooks,
        began_ns=began_ns,
        ended_ns=ended_ns,
        windows=((began_ns, ended_ns),),
        unrecorded=() if cut is None else (cut,),
        step_starts=_within(step_starts, began_ns + window.start_ns, ended_ns),
        trace_id=window.request.trace_id,
        is_partial=window.is_partial or trace.is_partial,
        overhead_ns=sum(costs_ns) + window.start_ns,
        between_ops_ns=sum(ns for kind, ns in zip(kinds, costs_ns, strict=True) if kind.runs_in_python),
        own_ns=window.start_ns,
        label=label,
    )
    if cut is not None:
        _warn_of_cut(trace, cut)
    if window.samples is not None:
        trace = with_samples(trace, window.samples, event_times)
        if window.sampled_from_ns is not None:
            trace = sampled_from(trace, window.sampled_from_ns)
        trace = _sampled_during(trace)
    if window.collections is not None:
        trace = with_collections(trace, window.collections, event_times)
    trace = open_regions(trace)
    lines = {} if annotate is None else annotate(trace, event_times)
    return replace(trace, **lines | sources(vars(trace) | lines))


def _merged(traces: list[Trace]) -> Trace:
    """All hooks' events, with one running total of memory for each device."""
    trace = merge(traces)
    with_memory = [one for one in traces if one.allocations is not None and len(one.allocations)]
    if trace.allocations is None or len(with_memory) < 2:
        return trace
    return replace(trace, allocations=of_recording(trace, trace.allocations))


def _cut(traces: Sequence[Trace], most: int, ended_ns: int) -> Unrecorded | None:
    """From when on events may be missing, and why: as the first hook reports, or at event `most + 1`."""
    spans = [span for trace in traces for span in trace.unrecorded]
    starts = np.concatenate([trace.start_ns for trace in traces])
    if len(starts) > most:
        spans.append(Unrecorded(int(np.partition(starts, most)[most]), ended_ns, full(most)))
    first = min(spans, default=None)
    return None if first is None or first.began_ns >= ended_ns else first._replace(ended_ns=ended_ns)


def _warn_of_cut(trace: Trace, cut: Unrecorded) -> None:
    covered_s, ran_s = ((ended_ns - trace.began_ns) / 1e9 for ended_ns in cut[:2])
    missing = f", and {'' if trace.dropped_exactly else 'at least '}{trace.dropped:,} events are missing"
    warn(f"recording stopped after {covered_s:.3g} of {ran_s:.3g} s{missing * bool(trace.dropped)}: {cut.reason}")


def _complete_until(moment_ns: int, trace: Trace) -> Trace:
    """`trace` without what came after a moment. Events that were running then end there, those of devices too."""
    kept = trace.take(trace.start_ns < moment_ns)
    late, records = kept.end_ns > moment_ns, kept.allocations
    made: Columns = {"dropped": trace.dropped + len(trace) - len(kept)}
    made["duration_ns"] = np.minimum(kept.duration_ns, moment_ns - kept.start_ns)
    if records is not None:
        made["allocations"] = records = records.take(records.time_ns < moment_ns)
    if records is not None and kept.memory_after is not None and late.any():
        ended = replace(kept, duration_ns=made["duration_ns"])
        _, held = held_around(ended, records, late & (kept.memory_after >= 0))
        made["memory_after"] = np.where(held >= 0, held, kept.memory_after)
    return replace(kept, **made).sorted()


def _sampled_during(trace: Trace) -> Trace:
    """`trace` without the samples of its profiler, which starts before it and stops after it."""
    samples = trace.samples
    if samples is None:
        return trace
    kept = samples.take((samples.time_ns >= trace.began_ns + trace.own_ns) & (samples.time_ns < trace.ended_ns))
    return replace(trace, samples=replace(kept, taken_ns=np.minimum(kept.taken_ns, trace.ended_ns)))


def _until(ended_ns: int, trace: Trace) -> Trace:
    """End scopes that were open at `ended_ns` there, and not when the hooks were stopped."""
    late = (trace.kind == SCOPE) & (trace.end_ns > ended_ns)
    if not late.any():
        return trace
    ends: Columns = {"duration_ns": np.where(late, np.maximum(ended_ns - trace.start_ns, 0), trace.duration_ns)}
    order = order_of(trace.start_ns, ends["duration_ns"])
    return replace(trace, **ends if order is None else taken(vars(trace) | ends, order))


def _steps(start_ns: Int64, step_starts: StepStarts) -> Int32:
    """The number of the step in which each event started; after a loop over `steps()`, the number that follows."""
    starts_ns, numbers = zip(*step_starts, strict=True)
    if numbers[-1] == NO_STEP:
        numbers = (*numbers[:-1], numbers[-2] + 1)
    step = np.searchsorted(starts_ns, start_ns, side="right") - 1
    return np.array(numbers, np.int32)[np.maximum(step, 0)]


def _within(step_starts: StepStarts, began_ns: int, ended_ns: int) -> StepStarts:
    """The steps of a window, whose first begins with it; () if the program has counted no steps."""
    before = [number for start_ns, number in step_starts if start_ns <= began_ns][-1:]
    later = [(start_ns, number) for start_ns, number in step_starts if began_ns < start_ns < ended_ns]
    inside = (*((began_ns, number) for number in before), *later)
    return () if {number for _, number in inside} <= {0} else inside


def _cost_ns(hook: HookKind, trace: Trace) -> int:
    """An estimate of the time that recording `trace` took."""
    calls = int(np.count_nonzero(trace.kind == PYTHON))
    return hook.cost_ns(trace, len(trace) - calls) + calls * PYTHON_CALL_NS
