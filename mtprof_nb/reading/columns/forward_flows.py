"""Phases, forward ops of the backward pass, and steps, from the flows, numbers and scopes of a file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from mtprof_nb.building.autograd_nodes import NodeLinks, link
from mtprof_nb.building.recorded_events import RecordedEvents
from mtprof_nb.model.intervals import runs_of_equal
from mtprof_nb.model.schema import Bool, Int32, Int64
from mtprof_nb.model.trace import BACKWARD, ENGINE_PREFIX, OP, PYTHON, SCOPE, STEP_PREFIX, Track
from mtprof_nb.reading.columns.chosen_spans import MOST_NUMBERS, ChosenSpans
from mtprof_nb.reading.columns.file_links import flow_pairs, rows_at

#: Flows from a forward op to the node that it made.
_FORWARD_FLOWS = ("fwdbwd", "forward_backward")
#: Threads of forward passes that are looked for at most.
_MOST_THREADS = 256

_STEP = re.compile(re.escape(STEP_PREFIX) + r"(\d{1,9})")


def linked_events(file: ChosenSpans) -> tuple[RecordedEvents, NodeLinks]:
    """All events of a file, and their links."""
    events = _events(file)
    flows = _flows(file, events)
    forward_thread = file.spans["forward_thread"]
    forward_thread = np.where(forward_thread > 0, file.within_processes(forward_thread), forward_thread)
    tracks = _tracks_of_numbers(events, forward_thread, flows)

    def forward_tracks(nodes: Int64) -> Int64:
        numbers, place = np.unique(forward_thread[nodes], return_inverse=True)
        return np.array([tracks.get(number, -1) for number in numbers.tolist()], np.int64)[place]

    links = link(events, forward_tracks, flows=flows)
    # Nodes that no engine ran: those of runtimes in which a backward op is a node itself.
    phase = np.where(flows >= 0, np.int8(BACKWARD), links.phase)
    forward = np.where(links.forward >= 0, links.forward, flows)
    threads = _numbered(file.tracks.tracks, tracks)
    return replace(events, threads=threads), NodeLinks(phase, forward, links.node)


def _tracks_of_numbers(events: RecordedEvents, forward_thread: Int64, flows: Int32) -> dict[int, int]:
    """The track of each of the runtime's numbers of threads: files have numbers for nodes alone, and no list of them.

    A flow leads to the track. Without one it is the track with the most ops that carry the numbers of the nodes.
    """
    is_node = events.is_backward_node | events.where_name(lambda name: name.startswith(ENGINE_PREFIX))
    makers = np.flatnonzero(events.is_op & ~is_node & (events.sequence_nr >= 0))
    nodes = np.flatnonzero(is_node & (events.sequence_nr >= 0) & (forward_thread > 0))
    tracks: dict[int, int] = {}
    for run in runs_of_equal(forward_thread[nodes])[:_MOST_THREADS]:
        here = nodes[run]
        linked = here[flows[here] >= 0]
        if len(linked):
            candidates = events.thread[flows[linked]]
        else:
            candidates = events.thread[makers[np.isin(events.sequence_nr[makers], events.sequence_nr[here])]]
        if len(candidates):
            tracks[int(forward_thread[here[0]])] = int(np.bincount(candidates).argmax())
    return tracks


def _numbered(tracks: tuple[Track, ...], numbers: Mapping[int, int]) -> tuple[Track, ...]:
    """The tracks with the runtime's own numbers, where a file has them."""
    number_of = {track: number % MOST_NUMBERS for number, track in numbers.items()}
    return tuple(track._replace(number=number_of.get(place, -1)) for place, track in enumerate(tracks))


def _events(file: ChosenSpans) -> RecordedEvents:
    names = set(file.names)
    is_node = np.array([ENGINE_PREFIX + name in names for name in file.names] or [False], np.bool_)
    return RecordedEvents(
        name=file.name,
        names=file.names,
        kind=file.kind,
        start_ns=file.spans["start_ns"],
        duration_ns=file.spans["duration_ns"],
        thread=file.tracks.track,
        threads=tuple(track._replace(number=number) for number, track in enumerate(file.tracks.tracks)),
        sequence_nr=file.sequence_nr,
        is_backward_node=is_node.take(file.name) & (file.kind == OP),
        # In exports of this package, Python calls that cross a scope have tracks of their own.
        is_async=(file.spans["is_async"] > 0) & (file.kind != PYTHON) & ~file.on_device,
    )


def _flows(file: ChosenSpans, events: RecordedEvents) -> Int32:
    """For each event that a flow from a forward op leads to, that op; -1 for all others."""
    forward = np.full(len(file), -1, np.int32)
    pairs = flow_pairs(file.collector.flows, list(file.collector.categories), _FORWARD_FLOWS, file.labels)
    if not len(pairs["end_ns"]):
        return forward
    is_engine = events.is_backward_node | events.where_name(lambda name: name.startswith(ENGINE_PREFIX))
    begins = _starting(file, events.is_op & ~is_engine, pairs["begin_lane"], pairs["begin_ns"])
    nodes = _starting(file, events.is_backward_node, pairs["end_lane"], pairs["end_ns"])
    others = _starting(file, events.is_op & ~events.is_backward_node, pairs["end_lane"], pairs["end_ns"])
    ends = np.where(nodes >= 0, nodes, others)
    known = (begins >= 0) & (ends >= 0)
    forward[ends[known]] = begins[known]
    file.tally["Links to events that are not in the file, left out"] += int((~known).sum())
    return forward


def _starting(file: ChosenSpans, chosen: Bool, lane: Int32, at_ns: Int64) -> Int64:
    """The last of the chosen events that starts at each moment on each lane, or -1."""
    track, start_ns = file.tracks.track, file.spans["start_ns"]
    return rows_at(track, start_ns, np.flatnonzero(chosen), file.host_tracks[lane], at_ns)


def step_numbers(file: ChosenSpans) -> Int32:
    """The number of the step that began last; of the first step for what came before it; 0 without steps."""
    start_ns, name, process = file.spans["start_ns"], file.name, file.process
    numbers = [int(match[1]) if (match := _STEP.fullmatch(text)) else -1 for text in file.names]
    number = np.array([*numbers, -1], np.int32)
    step = np.zeros(len(start_ns), np.int32)
    is_step = (file.kind == SCOPE) & (number[name] >= 0)
    for one in np.unique(process[is_step]).tolist():
        begins = np.flatnonzero(is_step & (process == one))
        here = process == one
        last = np.searchsorted(start_ns[begins], start_ns[here], "right") - 1
        step[here] = number[name[begins[np.maximum(last, 0)]]]
    return step
