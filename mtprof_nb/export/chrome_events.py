"""The events of a trace as lines of Chrome's trace format, from whole columns, a chunk of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat

import numpy as np

from mtprof_nb.export.chrome_facts import Facts
from mtprof_nb.export.chrome_text import Texts, quoted, row_by_row
from mtprof_nb.export.chrome_tracks import ChromeTracks
from mtprof_nb.export.cut_texts import cut_name
from mtprof_nb.export.fixed_width import Words, beside, constant, integers, microseconds, row_texts
from mtprof_nb.model.intervals import range_minima
from mtprof_nb.model.trace import (
    ACTIVITY_TYPES,
    ENGINE_PREFIX,
    OP,
    PYTHON,
    SCOPE,
    STEP_PREFIX,
    Bool,
    Int64,
    Trace,
)

#: Rows that are converted at once: many, for the speed of numpy, but few enough for the processor's cache.
_CHUNK_ROWS, _CHUNK_BYTES = 1 << 13, 1 << 26

_RUNTIME_OF_DEVICE = {
    "CUDA": "cuda_runtime",
    "XPU": "xpu_runtime",
    "MTIA": "mtia_runtime",
    "NPU": "privateuse1_runtime",
}


class EventLines:
    """Lines of JSON, each with a comma at its end; texts that many rows share are escaped once."""

    def __init__(self, trace: Trace, tracks: ChromeTracks, base_ns: int) -> None:
        self._trace = trace
        self._base_ns = base_ns
        self._opening, self._openings = _openings(trace)
        self._tracks = tracks
        # Viewers drop an event that crosses another one on its track. So crossing scopes get tracks of their own, but
        # for steps, which readers look for here; and so do Python calls that cross the other scopes.
        own_track = trace.is_async | _crossing_scopes(trace)
        self._own_track = own_track | _crossing_calls(trace, (trace.kind == SCOPE) & ~own_track)
        self._facts = Facts(trace)
        # Names and stacks may be of any length.
        longest = max(map(len, self._openings), default=0) + self._facts.longest
        self._chunk_rows = min(_CHUNK_ROWS, max(1, _CHUNK_BYTES // max(1, longest)))

    def events(self) -> Iterator[bytes]:
        """An `X` event for each event: first the ops, then all others."""
        is_op = self._trace.kind == OP
        for rows in (np.flatnonzero(is_op & ~self._own_track), np.flatnonzero(~is_op & ~self._own_track)):
            for first in range(0, len(rows), self._chunk_rows):
                yield self._events(rows[first : first + self._chunk_rows])

    def _events(self, rows: Int64) -> bytes:
        starts, lengths = self._trace.start_ns[rows] - self._base_ns, self._trace.duration_ns[rows]
        when = (*microseconds(starts), constant(',"dur":'), *microseconds(lengths), constant(',"args":{'))
        numbers = beside(len(rows), self._tracks.fields(rows), *when, *self._facts.numbers(rows))
        return row_by_row(
            repeat(b'{"ph":"X",'),
            self._openings[self._opening[rows]].tolist(),
            row_texts(numbers),
            *self._facts.texts(rows),
            repeat(b"}},\n"),
        )

    def async_events(self) -> Iterator[bytes]:
        """A `b` and an `e` event for each event with a track of its own."""
        rows = np.flatnonzero(self._own_track)
        for ending, times in (("b", self._trace.start_ns), ("e", self._trace.end_ns)):
            columns = (*self._moments(rows, times[rows]), constant(',"args":{'), *self._facts.numbers(rows))
            yield row_by_row(
                row_texts(beside(len(rows), constant(f'{{"ph":"{ending}","id":'), integers(rows), constant(","))),
                self._openings[self._opening[rows]].tolist(),
                row_texts(beside(len(rows), *columns)),
                *self._facts.texts(rows),
                repeat(b"}},\n"),
            )

    def flows(self) -> Iterator[bytes]:
        """Arrows from each forward op to its backward, and from each launch, or its op, to the device."""
        later = _backward_nodes(self._trace)
        yield from self._arrows("fwdbwd", self._trace.forward[later].astype(np.int64), later)
        if self._trace.launcher is not None:
            launch, launcher = self._trace.launch, self._trace.launcher
            earlier = launcher if launch is None else np.where(launch >= 0, launch, launcher)
            later = np.flatnonzero((earlier >= 0) & self._trace.on_device)
            yield from self._arrows("ac2g", earlier[later].astype(np.int64), later)

    def _arrows(self, name: str, earlier: Int64, later: Int64) -> Iterator[bytes]:
        for ending, rows, tail in (("s", earlier, ""), ("f", later, ',"bp":"e"')):
            yield beside(
                len(rows),
                constant(f'{{"ph":"{ending}","cat":"{name}","name":"{name}"{tail},"id":'),
                integers(np.arange(1, len(rows) + 1)),
                *self._moments(rows, self._trace.start_ns[rows]),
                constant("},\n"),
            ).tobytes()

    def _moments(self, rows: Int64, times: Int64) -> list[Words]:
        return [self._tracks.fields(rows), *microseconds(times - self._base_ns)]


def _openings(trace: Trace) -> tuple[Int64, Texts]:
    """Texts with category and name, and for each event its position among them."""
    categories, (named, names) = _category_names(trace), _written_names(trace)
    position = trace.kind.astype(np.int64) * len(names) + named
    counts = np.bincount(position)
    used = np.flatnonzero(counts)
    texts = np.full(int(used.max(initial=0)) + 1, b"", object)
    for number in used.tolist():
        category, name = divmod(number, len(names))
        written = quoted(cut_name(names[name], int(counts[number])))
        texts[number] = f'"cat":"{categories[category]}","name":{written}'.encode("ascii")
    return position, texts


def _written_names(trace: Trace) -> tuple[Int64, Sequence[str]]:
    """Names, and for each event its position among them; like Kineto, with the overload if it was recorded."""
    if trace.overload is None or "kineto" not in trace.hooks:
        return trace.name.astype(np.int64), trace.names
    size = len(trace.overloads) + 1
    used, named = np.unique(trace.name.astype(np.int64) * size + trace.overload + 1, return_inverse=True)
    endings = ("", *(f".{overload}" for overload in trace.overloads))
    pairs = [(trace.names[code // size], endings[code % size]) for code in used.tolist()]
    return named, [name + ending for name, ending in pairs]


def _category_names(trace: Trace) -> list[str]:
    runtime = next((name for device, name in _RUNTIME_OF_DEVICE.items() if device in trace.devices), "runtime")
    return [runtime if name == "runtime" else name for name in ACTIVITY_TYPES]


def _backward_nodes(trace: Trace) -> Int64:
    """The targets of arrows: the outermost event of an op's backward, or the node that the engine ran in it."""
    engine = trace.where_name(lambda name: name.startswith(ENGINE_PREFIX))
    rows = np.flatnonzero((trace.forward >= 0) & ~trace.is_async)
    rows = rows[np.argsort(trace.forward[rows], kind="stable")]
    kept = [np.empty(0, np.int64)]
    while len(rows):
        is_first = np.diff(trace.forward[rows], prepend=-1) != 0
        outer = rows[is_first][np.cumsum(is_first) - 1]
        inside = (trace.track[rows] == trace.track[outer]) & (trace.start_ns[rows] < trace.end_ns[outer])
        is_node = np.append(False, (engine[rows] & is_first)[:-1]) & inside & ~is_first
        kept += [rows[is_first & ~np.append(is_node[1:], False)], rows[is_node]]
        rows = rows[~inside & ~is_first]
    return np.sort(np.concatenate(kept))


def _crossing_scopes(trace: Trace) -> Bool:
    """Scopes that cross another scope on the track of their thread, as those of interleaved coroutines do.

    Of a step and a scope that cross, this is the scope alone.
    """
    scopes = (trace.kind == SCOPE) & ~trace.is_async
    steps = scopes & trace.where_name(lambda name: name.startswith(STEP_PREFIX))
    return _crossed_by_scopes(trace, scopes & ~steps, scopes) | _crossed_by_scopes(trace, steps, steps)


def _crossing_calls(trace: Trace, scopes: Bool) -> Bool:
    """Python calls that cross one of `scopes`: calls that open or close a scope end inside it, or begin there."""
    return _crossed_by_scopes(trace, trace.kind == PYTHON, scopes)


def _crossed_by_scopes(trace: Trace, asked: Bool, scopes: Bool) -> Bool:
    crossing = np.zeros(len(trace), np.bool_)
    if not asked.any():
        return crossing
    for thread in np.unique(trace.track[scopes]).tolist():
        here = trace.track == thread
        rows, around = np.flatnonzero(asked & here), np.flatnonzero(scopes & here)
        edges = trace.start_ns[around], trace.end_ns[around]
        crossing[rows] = crosses(trace.start_ns[rows], trace.end_ns[rows], *edges)
    return crossing


def crosses(starts: Int64, ends: Int64, other_starts: Int64, other_ends: Int64) -> Bool:
    """Whether each interval contains exactly one end of some other interval."""
    times = np.concatenate([other_starts, other_ends])
    order = np.argsort(times, kind="stable")
    times, second_ends = times[order], np.concatenate([other_ends, other_starts])[order]
    first, last = np.searchsorted(times, starts, "right"), np.searchsorted(times, ends, "left")
    earliest, latest = range_minima(second_ends, first, last), -range_minima(-second_ends, first, last)
    return (earliest < starts) | (latest > ends)
