"""The spans of a file that become events: what kind each one is of, and on which track it stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mtprof_nb.building.interning import intern, used_part
from mtprof_nb.building.thread_intervals import ThreadIntervals
from mtprof_nb.model.kineto_kinds import LEFT_OUT
from mtprof_nb.model.schema import Bool, Int8, Int32, Int64
from mtprof_nb.model.trace import RUNTIME, on_device
from mtprof_nb.reading.columns.file_tracks import FileTracks, file_tracks, is_asleep, label_of
from mtprof_nb.reading.dialects.dialect import Dialect
from mtprof_nb.reading.spans.collector import Collector
from mtprof_nb.reading.spans.descriptions import Descriptions, descriptions
from mtprof_nb.reading.spans.spans import Spans, whole_spans

#: Numbers of calls, threads and autograd's nodes are below this; a file may have others.
MOST_NUMBERS = 2**40
_OF_COLLECTIVES = '"Collective name"'
#: The category of spans that describe the recording, not the program.
_OF_RECORDING = "Trace"


@dataclass(frozen=True)
class ChosenSpans:
    """Spans with their kinds and tracks, the tables they point into, and what was left out."""

    collector: Collector
    document: Mapping[str, Any]
    path: Path
    described: Descriptions
    spans: Spans
    name: Int32
    names: tuple[str, ...]
    kind: Int8
    tracks: FileTracks
    device_name: str
    dialect: Dialect
    #: Start and end of the recording; (0, 0) where the file has none.
    window: tuple[int, int]
    #: How many events are not shown as they stand in the file, by what they are.
    tally: Counter[str]

    def __len__(self) -> int:
        return len(self.spans)

    @cached_property
    def on_device(self) -> Bool:
        return on_device(self.kind)

    @cached_property
    def process(self) -> Int32:
        return np.array([track.process for track in self.tracks.tracks] or [0], np.int32)[self.tracks.track]

    def within_processes(self, numbers: Int64) -> Int64:
        """`numbers` made unique over processes, each of which counts on its own; -1 for impossible ones."""
        known = (numbers >= 0) & (numbers < MOST_NUMBERS)
        return np.where(known, numbers + self.process.astype(np.int64) * MOST_NUMBERS, -1)

    @cached_property
    def sequence_nr(self) -> Int64:
        """Autograd's sequence numbers; -1 where there is none, or an impossible one."""
        number = self.spans["sequence_nr"]
        return np.where((number >= 0) & (number < MOST_NUMBERS), number, -1)

    @cached_property
    def host_tracks(self) -> Int32:
        """The track of the thread of each lane, -1 for a lane without events of the host."""
        tracks = np.full(len(self.collector.lanes) + 1, -1, np.int32)
        tracks[self.spans["lane"][~self.on_device]] = self.tracks.track[~self.on_device]
        return tracks

    @cached_property
    def labels(self) -> Int32:
        """For each lane a number of the label of its process; all are 0 in a file that no tool has merged."""
        known: dict[str, int] = {"": 0}
        numbers = [known.setdefault(label_of(pid), len(known)) for pid, _ in self.collector.lanes]
        return np.array([*numbers, 0], np.int32)

    @cached_property
    def rest(self) -> Int32:
        """The further members of `args` of each span: a position in `collector.facts.rests`, or -1."""
        return self.spans["rest"].astype(np.int32)

    @cached_property
    def has_extras(self) -> Bool:
        """Spans of devices and collectives: their further members are metadata. Those of others are keywords."""
        of_collective = self.spans.where("rest", (_OF_COLLECTIVES in text for text in self.collector.facts.rests))
        has_metadata: Bool = self.on_device | (self.kind == RUNTIME) | of_collective
        return has_metadata

    @cached_property
    def intervals(self) -> ThreadIntervals:
        start_ns = self.spans["start_ns"]
        return ThreadIntervals(start_ns, start_ns + self.spans["duration_ns"], self.tracks.track)


def chosen_spans(
    collector: Collector, document: Mapping[str, Any], path: Path, dialects: Sequence[Dialect]
) -> ChosenSpans:
    """The spans that become events, read by the first of `dialects` that recognises the file."""
    described = descriptions(collector)
    spans = whole_spans(collector)
    tally = Counter(collector.left_out) + spans.problems
    dialect = next(one for one in dialects if one.recognise(described))
    kind = dialect.kinds(collector, spans, described, tally)
    spans, lanes = dialect.threads(collector, spans, kind, described)
    window = _window(collector, spans)
    asleep = is_asleep(lanes, spans, kind)
    tally["Python calls of threads that slept throughout, left out"] += int(asleep.sum())
    kept = np.flatnonzero((kind != LEFT_OUT) & ~asleep)
    if len(kept) < len(spans):
        spans, kind = spans.take(kept), kind.take(kept)
    name, names = _names(collector, spans["name"])
    numbers = dialect.numbers(collector, described)
    tracks = file_tracks(lanes, spans, kind, described, numbers, tally)
    return ChosenSpans(
        collector=collector,
        document=document,
        path=path,
        described=described,
        spans=spans,
        name=name,
        names=names,
        kind=kind,
        tracks=tracks,
        device_name=numbers.device,
        dialect=dialect,
        window=window,
        tally=tally,
    )


def _names(collector: Collector, name: Int32) -> tuple[Int32, tuple[str, ...]]:
    """Names as texts, each once, of the spans that are kept."""
    position, texts = used_part(name, list(collector.names))
    number, names = intern([text_in_utf8(text) for text in texts])
    return number[position] if names else name, names


def text_in_utf8(name: Any) -> str:
    """A name as text that can be written as UTF-8."""
    text = name if isinstance(name, str) else "" if name is None else str(name)
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _window(collector: Collector, spans: Spans) -> tuple[int, int]:
    """Start and end of the recording, from the spans that describe it."""
    rows = np.flatnonzero(spans.where("category", (one == _OF_RECORDING for one in collector.categories)))
    if not len(rows):
        return 0, 0
    start_ns = spans["start_ns"][rows]
    return int(start_ns.min()), int((start_ns + spans["duration_ns"][rows]).max())
