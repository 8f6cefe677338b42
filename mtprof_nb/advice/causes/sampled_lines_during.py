"""The user's lines that threads were running at certain times, from samples."""

from __future__ import annotations

from collections import Counter

import numpy as np

from mtprof_nb.model.intervals import covered
from mtprof_nb.model.source_files import is_user_file
from mtprof_nb.model.trace import Int32, Int64, SourceLine, Trace


def sampled_lines_during(
    trace: Trace, start_ns: Int64, end_ns: Int64, track: Int32, *, was_read: bool = False
) -> Counter[SourceLine | None]:
    """Count the samples of each line in these intervals of threads; None counts those of no line of the user.

    A stack that is asked for in C code is read at its end: with `was_read`, it has to be read in the interval.
    """
    counts: Counter[SourceLine | None] = Counter()
    samples, tree = trace.samples, trace.stacks
    if samples is None or tree is None:
        return counts
    moments = samples.taken_ns if was_read else samples.time_ns
    for one in set(track.tolist()):
        own, rows = track == one, np.flatnonzero(samples.track == one)
        inside = covered(start_ns[own], end_ns[own], moments[rows])
        for node, count in Counter(samples.stack[rows[inside]].tolist()).items():
            frames = tree.stack(node) if node >= 0 else ()
            counts[next((SourceLine(*frame[:2]) for frame in frames if is_user_file(frame.file)), None)] += count
    return counts
