"""Garbage collections of a file that this package wrote."""

from __future__ import annotations

import numpy as np

from mtprof_nb.model.schema import TIMES, Int32
from mtprof_nb.model.trace import Collections
from mtprof_nb.reading.spans.tables import GrowingColumns


def collections(found: GrowingColumns, track: Int32, moved_ns: int) -> Collections:
    """The collections in order of time, later by `moved_ns`; `track` has the track of each."""
    made = Collections(
        start_ns=found.whole("start_ns") + moved_ns,
        duration_ns=found.whole("duration_ns").clip(0, TIMES.limit - 1),
        generation=found.whole("generation").clip(0, 2),
        track=track,
    )
    return made.take(np.argsort(made.start_ns, kind="stable"))
