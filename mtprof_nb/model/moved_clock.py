"""A trace on another clock."""

from __future__ import annotations

from dataclasses import replace

from mtprof_nb.model.trace import Trace


def moved_clock(trace: Trace, offset_ns: int) -> Trace:
    """The trace with all of its times later by `offset_ns`."""
    if not offset_ns:
        return trace
    records, samples = trace.allocations, trace.samples
    return replace(
        trace,
        start_ns=trace.start_ns + offset_ns,
        allocations=None if records is None else replace(records, time_ns=records.time_ns + offset_ns),
        samples=None
        if samples is None
        else replace(samples, time_ns=samples.time_ns + offset_ns, taken_ns=samples.taken_ns + offset_ns),
        began_ns=trace.began_ns + offset_ns,
        ended_ns=trace.ended_ns + offset_ns,
        windows=_moved(trace.windows, offset_ns),
        process_facts=tuple(
            facts._replace(
                began_ns=facts.began_ns + offset_ns,
                ended_ns=facts.ended_ns + offset_ns,
                windows=_moved(facts.windows, offset_ns),
            )
            for facts in trace.process_facts
        ),
    )


def _moved(windows: tuple[tuple[int, int], ...], offset_ns: int) -> tuple[tuple[int, int], ...]:
    return tuple((began + offset_ns, ended + offset_ns) for began, ended in windows)
