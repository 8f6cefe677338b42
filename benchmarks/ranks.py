"""Figures 11: recordings of many processes, joined and shown. The ranks are synthetic: one recording, many times."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks import child
from benchmarks.figure import Bound, Figure, Spread, at_most
from benchmarks.memory import forget_peak, is_known, peak, resident
from benchmarks.repeated import recording, repeated
from benchmarks.sampling import Sample, Scale
from mtprof_nb.model.merge import merge
from mtprof_nb.model.trace import PYTHON, SCOPE, Process, Trace, Track

GROUP = "11 ranks"
#: Number of ranks and of events of each: what a panel has to open, and how cost grows with the number of ranks.
_LARGEST = (64, 100_000)
_EVENTS = 1_000
_RANKS = (16, 64, 256, 1_024)
#: Collectives of each rank.
_CALLS = 60


def figures(scale: Scale) -> list[Figure]:
    """Each size in a process of its own, once: the work is long enough to be measured."""
    largest = _LARGEST if scale.sizes[-1] >= 1_000_000 else (4, scale.sizes[-1])
    sizes = [count for count in _RANKS if count <= 16 or count * _EVENTS <= scale.sizes[-1]]
    found = _of_size(*largest, at_most(5.0))
    grown = {count: measured(count, _EVENTS) for count in sizes}
    for count, sample in grown.items():
        found += _titled(count, _EVENTS, sample, at_most(30.0))
        ratio = (sample["panel"] / count) / (grown[sizes[0]]["panel"] / sizes[0])
        title = f"{count:,} ranks of {_EVENTS:,} events: panel, cost of a rank"
        found.append(Figure(GROUP, title, f"{sizes[0]} ranks", Spread.of([ratio]), 1, bound=at_most(1.3)))
    return found


def _of_size(count: int, events: int, bound: Bound) -> list[Figure]:
    return _titled(count, events, measured(count, events), bound)


def _titled(count: int, events: int, sample: Sample, bound: Bound) -> list[Figure]:
    title = f"{count:,} ranks of {events:,} events"
    rows: list[tuple[str, str, str, Bound | None]] = [
        ("joined", "join", "s", None),
        ("panel", "first panel", "s", bound),
        ("bytes", "bytes sent first", "kB", None),
        *([("peak", "peak of memory", "B an event", None)] if "peak" in sample else []),
    ]
    return [
        Figure(GROUP, f"{title}: {what}", "", Spread.of([sample[key]]), 1, unit=unit, bound=limit)
        for key, what, unit, limit in rows
    ]


def measured(count: int, events: int) -> Sample:
    """`measure` in a process of its own."""
    found: Sample = child.call("benchmarks.ranks:measure", count, events)
    return found


def measure(count: int, events: int) -> Sample:
    """Processor seconds to join the recordings of `count` ranks and to make the panel; bytes beyond the ranks' own."""
    from mtprof_nb.views.panel.show_panel import panel

    parts = ranks(count, events)
    panel(merge(parts[:2]))  # imports
    before = resident() if is_known() else 0
    if is_known():
        forget_peak()
    began = time.process_time()
    trace = merge(parts)
    joined = time.process_time()
    made = panel(trace)
    shown = time.process_time()
    sample: dict[str, Any] = {
        "joined": joined - began,
        "panel": shown - joined,
        "bytes": sum(map(len, made.first.values())) / 1000,
    }
    return sample | ({"peak": (peak() - before) / len(trace)} if is_known() else {})


def ranks(count: int, events: int) -> list[Trace]:
    """Recordings of ranks that differ a little in when they come to a collective; the last one comes late."""
    real = recording(4, with_stack=True, record_shapes=True)
    # As hook native records: the stacks of ops, without a row for each Python call.
    base = _with_calls(repeated(real.take(real.kind != PYTHON), events))
    is_call = base.where_name(lambda name: name.startswith("gloo:"))
    late = np.random.default_rng(0).integers(0, 20_000, count)
    late[-1] += 200_000
    parts = []
    for rank in range(count):
        start, duration = base.start_ns + is_call * late[rank], base.duration_ns - is_call * late[rank]
        process = Process(rank + 1, rank, "host")
        parts.append(replace(base, start_ns=start, duration_ns=duration, processes=(process,)).sorted())
    return parts


def _with_calls(trace: Trace) -> Trace:
    """The trace with collectives on a thread of Gloo, evenly over its time; each takes 0.3 ms."""
    times = np.linspace(trace.began_ns, trace.ended_ns - 400_000, _CALLS).astype(np.int64)
    calls = trace.take(np.zeros(_CALLS, np.int64))
    process = replace(
        calls,
        name=np.zeros(_CALLS),
        names=("gloo:all_reduce",),
        kind=np.full(_CALLS, SCOPE),
        start_ns=times,
        duration_ns=np.full(_CALLS, 300_000),
        track=np.zeros(_CALLS),
        tracks=(Track(99, "pt_gloo_runloop"),),
        correlation_id=np.zeros(_CALLS),
        forward=np.full(_CALLS, -1),
        is_async=np.zeros(_CALLS, np.bool_),
        allocations=None,
    )
    return merge([trace, process])
