"""A dialect of Chrome traces: how the files of one profiler are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtprof_nb.model.schema import Columns, Int8
from mtprof_nb.reading.columns.file_tracks import DeviceNumbers, Lane
from mtprof_nb.reading.spans.collector import Collector
from mtprof_nb.reading.spans.descriptions import Descriptions
from mtprof_nb.reading.spans.spans import Spans

if TYPE_CHECKING:
    from mtprof_nb.reading.columns.chosen_spans import ChosenSpans


@dataclass(frozen=True)
class Dialect:
    """The meaning of spans in the files of one profiler. `chrome_file.DIALECTS` lists all dialects."""

    #: Whether a file is of this dialect.
    recognise: Callable[[Descriptions], bool]
    #: The kind of each span, or `LEFT_OUT`. The counter takes how many spans are not shown as they are, and why.
    kinds: Callable[[Collector, Spans, Descriptions, Counter[str]], Int8]
    #: The type of the devices, and how they are numbered.
    numbers: Callable[[Collector, Descriptions], DeviceNumbers]
    #: The columns `launch` and `launcher`.
    launches: Callable[[ChosenSpans], Columns]
    #: The spans, on the lanes of the threads that ran them, and process and thread of each lane.
    threads: Callable[[Collector, Spans, Int8, Descriptions], tuple[Spans, list[Lane]]] = (
        lambda collector, spans, _, __: (spans, list(collector.lanes))
    )
    #: Members of `args` of a collective under Kineto's keys, by its name and members.
    extras: Callable[[str, dict[str, Any]], dict[str, Any]] = lambda _, members: members
    #: The rank that another file beside the trace has; None where there is no such file.
    rank_beside: Callable[[Path], int | None] = lambda _: None
