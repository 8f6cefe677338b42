"""The time of garbage collections, and the line on which most of it fell."""

from __future__ import annotations

from collections import Counter

import numpy as np

from mtprof_nb.model.intervals import covered, covered_length
from mtprof_nb.model.source_files import is_user_file
from mtprof_nb.model.trace import SourceLine, Trace

#: A line is told if this share of the samples in collections is of it, and there are so many.
_MOSTLY, _LEAST_SAMPLES = 0.5, 4


def collected_ns(trace: Trace) -> int:
    """The time in which a garbage collection ran; 0 where collections are not known."""
    found = trace.collections
    return 0 if found is None else covered_length(found.start_ns, found.start_ns + found.duration_ns)


def line_of_collections(trace: Trace) -> SourceLine | None:
    """The user's line on which at least half of the time of collections fell; None if samples do not tell one."""
    found, samples, tree = trace.collections, trace.samples, trace.stacks
    if found is None or samples is None or tree is None:
        return None
    inside = np.zeros(len(samples), np.bool_)
    for track in set(samples.track.tolist()):
        own, rows = found.take(found.track == track), np.flatnonzero(samples.track == track)
        inside[rows] = covered(own.start_ns, own.start_ns + own.duration_ns, samples.time_ns[rows])
    lines: Counter[SourceLine | None] = Counter()
    for node in samples.stack[inside].tolist():
        frames = tree.stack(node) if node >= 0 else ()
        lines[next((SourceLine(*frame[:2]) for frame in frames if is_user_file(frame.file)), None)] += 1
    line, count = next(iter(lines.most_common(1)), (None, 0))
    return line if count >= max(_MOSTLY * inside.sum(), _LEAST_SAMPLES) else None
