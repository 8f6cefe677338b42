"""Makes the finished `Trace` of a stopped window: merges the hooks' events, then adds steps, lines and texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mtprof_nb.building.allocator_records import of_recording
from mtprof_nb.capture.async_scopes import OpenScope, mark_interleaved
from mtprof_nb.capture.collector_watch import WatchedCollections, with_collections
from mtprof_nb.capture.hook import EventTimes, Request
from mtprof_nb.capture.registry import HOOK_KINDS, SCOPES_ALONE, HookKind, default_hooks
from mtprof_nb.capture.shared.sampled_stacks import SampledStacks, with_samples
from mtprof_nb.capture.source_texts import sources
from mtprof_nb.errors import warn
from mtprof_nb.model.bookkeeping import PYTHON_CALL_NS
from mtprof_nb.model.intervals import order_of
from mtprof_nb.model.merge import merge
from mtprof_nb.model.trace import PYTHON, SCOPE, Columns, Int32, Int64, Trace, taken
from mtprof_nb.model.tracks import with_metadata


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
    #: Converts times of the session's clock to times of events.
    event_times: Callable[[npt.ArrayLike], Int64]
    #: Samples of Python stacks, None where none were asked for.
    samples: SampledStacks | None = None
    collections: WatchedCollections | None = None


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
    trace = _within_limit(_merged(list(window.traces.values())), window.request.max_events)
    began_ns, ended_ns = window.event_times([window.began_ns, window.ended_ns]).tolist()
    trace = _until(ended_ns, trace)
    kinds = [HOOK_KINDS.get(name, SCOPES_ALONE) for name in window.traces]
    costs_ns = [_cost_ns(kind, part) for kind, part in zip(kinds, window.traces.values(), strict=True)]
    trace = replace(
        trace,
        step=_steps(trace.start_ns, window, steps),
        is_async=mark_interleaved(trace, interleaved, window.event_times),
        processes=with_metadata(trace.processes, metadata or {}),
        hooks=window.hooks,
        began_ns=began_ns,
        ended_ns=ended_ns,
        windows=((began_ns, ended_ns),),
        trace_id=window.request.trace_id,
        is_partial=window.is_partial or trace.is_partial,
        overhead_ns=sum(costs_ns) + window.start_ns,
        between_ops_ns=sum(ns for kind, ns in zip(kinds, costs_ns, strict=True) if kind.runs_in_python),
        own_ns=window.start_ns,
        label=label,
    )
    offset_ns = window.request.clock.offset_ns
    event_times: EventTimes = lambda ns: window.event_times(ns + offset_ns)  # noqa: E731
    if window.samples is not None:
        trace = with_samples(trace, window.samples, event_times)
    if window.collections is not None:
        trace = with_collections(trace, window.collections, event_times)
    lines = {} if annotate is None else annotate(trace, event_times)
    return replace(trace, **lines | sources(vars(trace) | lines))


def _merged(traces: list[Trace]) -> Trace:
    """All hooks' events, with one running total of memory for each device."""
    trace = merge(traces)
    with_memory = [one for one in traces if one.allocations is not None and len(one.allocations)]
    if trace.allocations is None or len(with_memory) < 2:
        return trace
    return replace(trace, allocations=of_recording(trace, trace.allocations))


def _within_limit(trace: Trace, most: int) -> Trace:
    """The first `most` events of `trace`: two hooks may each have recorded as many."""
    more = len(trace) - most
    if more <= 0:
        return trace
    if not trace.dropped:
        warn(f"recording stopped at max_events={most:,}: {more:,} events are missing; raise max_events")
    return replace(trace.take(np.arange(most)), dropped=trace.dropped + more)


def _until(ended_ns: int, trace: Trace) -> Trace:
    """`trace` in which scopes that were open at its end, end there, and not when the hooks were stopped."""
    late = (trace.kind == SCOPE) & (trace.end_ns > ended_ns)
    if not late.any():
        return trace
    ends: Columns = {"duration_ns": np.where(late, np.maximum(ended_ns - trace.start_ns, 0), trace.duration_ns)}
    order = order_of(trace.start_ns, ends["duration_ns"])
    return replace(trace, **ends if order is None else taken(vars(trace) | ends, order))


def _steps(start_ns: Int64, window: StoppedWindow, steps: Sequence[tuple[int, int]]) -> Int32:
    """The number of the step in which each event started."""
    numbers, moments_ns = zip(*steps, strict=True)
    step = np.searchsorted(window.event_times(moments_ns), start_ns, side="right") - 1
    return np.array(numbers, np.int32)[np.maximum(step, 0)]


def _cost_ns(hook: HookKind, trace: Trace) -> int:
    """An estimate of the time that recording `trace` took."""
    calls = int(np.count_nonzero(trace.kind == PYTHON))
    return (len(trace) - calls) * hook.cost_ns(trace.recorded) + calls * PYTHON_CALL_NS
