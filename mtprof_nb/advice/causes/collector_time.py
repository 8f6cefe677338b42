"""The time of garbage collections, and the line on which most of it fell."""

from __future__ import annotations

import numpy as np

from mtprof_nb.advice.causes.preparations import is_import
from mtprof_nb.advice.causes.sampled_lines_during import sampled_lines_during
from mtprof_nb.model.intervals import covered_length
from mtprof_nb.model.trace import Collections, SourceLine, Trace

#: A line is named if it has this share of the samples in collections, and at least this many of them.
_MOSTLY, _LEAST_SAMPLES = 0.5, 4


def collected_ns(collections: Collections | None) -> int:
    """The time in which a garbage collection ran; 0 where collections are not known."""
    return 0 if collections is None else covered_length(collections.start_ns, collections.end_ns)


def line_of_collections(trace: Trace, collections: Collections) -> SourceLine | None:
    """The user's line on which at least half of the time of collections fell; None if samples show none."""
    lines = sampled_lines_during(trace, collections.start_ns, collections.end_ns, collections.track)
    line, count = next(iter(lines.most_common(1)), (None, 0))
    return line if count >= max(_MOSTLY * lines.total(), _LEAST_SAMPLES) else None


def collections_outside_imports(trace: Trace) -> Collections | None:
    """The collections for which neither the last sample of their thread nor the next one is of an import.

    Imports make many objects, and run once.
    """
    collections, samples = trace.collections, trace.samples
    if collections is None or samples is None or trace.stacks is None:
        return collections
    imports = np.append(is_import(trace), np.False_)[samples.stack]
    during = np.zeros(len(collections), np.bool_)
    for track in set(collections.track.tolist()):
        own, rows = np.flatnonzero(collections.track == track), np.flatnonzero(samples.track == track)
        if len(rows):
            after = np.searchsorted(samples.time_ns[rows], collections.start_ns[own])
            around = rows[np.maximum(after - 1, 0)], rows[np.minimum(after, len(rows) - 1)]
            during[own] = imports[around[0]] | imports[around[1]]
    return collections.take(~during)
