"""Garbage collections as spans of a Chrome trace, on the threads that ran them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mtprof_nb.export.chrome_tracks import ChromeTracks
from mtprof_nb.export.fixed_width import beside, constant, digits, microseconds
from mtprof_nb.model.trace import Trace

_CHUNK_ROWS = 1 << 14


def collection_lines(trace: Trace, tracks: ChromeTracks, base_ns: int) -> Iterator[bytes]:
    """A line for each collection, ending in a comma."""
    found = trace.collections
    if found is None:
        return
    for first in range(0, len(found), _CHUNK_ROWS):
        part = found.take(np.arange(first, min(first + _CHUNK_ROWS, len(found))))
        yield beside(
            len(part),
            constant('{"ph":"X","cat":"garbage_collection","name":"garbage collection"'),
            tracks.fields_of_tracks(part.track),
            *microseconds(np.maximum(part.start_ns - base_ns, 0)),
            constant(',"dur":'),
            *microseconds(part.duration_ns),
            constant(',"args":{"generation":'),
            digits(part.generation.astype(np.int64)),
            constant("}},\n"),
        ).tobytes()
