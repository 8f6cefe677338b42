"""Links from events on a device to the calls that launched them, and to the ops that made those calls."""

from __future__ import annotations

import numpy as np

from mtprof_nb.building.interning import first_with_number
from mtprof_nb.model.schema import Columns, Int64
from mtprof_nb.model.trace import OP, RUNTIME, SCOPE
from mtprof_nb.reading.columns.chosen_spans import ChosenSpans
from mtprof_nb.reading.columns.file_links import flow_pairs, rows_at
from mtprof_nb.reading.spans.collector import LAUNCH_FLOWS


def launches(file: ChosenSpans) -> Columns:
    """`launch` and `launcher` of each span."""
    kind, on_device = file.kind, file.on_device
    correlation = file.within_processes(file.spans["correlation"])
    external = file.within_processes(file.spans["external"])
    is_call = kind == RUNTIME
    launch = first_with_number(correlation, np.flatnonzero(is_call), correlation, on_device & (correlation > 0))
    by_flow = _by_flows(file)
    launch = np.where(launch >= 0, launch, by_flow["launch"])
    # Older recordings repeat the number of the call in place of the op's.
    has_own = (external > 0) & (external != correlation) & (is_call | on_device)
    among = np.flatnonzero((kind == OP) | (kind == SCOPE))
    launcher = first_with_number(external, among, external, has_own)
    lacking = np.flatnonzero(is_call & (launcher < 0))
    launcher[lacking] = file.intervals.running(kind == OP, file.tracks.track[lacking], file.spans["start_ns"][lacking])
    of_launch = np.where(launch >= 0, launcher[launch], -1)
    launcher = np.where(on_device & (launcher < 0), np.where(of_launch >= 0, of_launch, by_flow["launcher"]), launcher)
    return {"launch": launch, "launcher": launcher}


def _by_flows(file: ChosenSpans) -> Columns:
    """The call, or the op, at which the flow to each event of a device begins: for files without other numbers."""
    pairs, ends = flows_to_devices(file, tuple(LAUNCH_FLOWS))
    track, start_ns = file.host_tracks[pairs["begin_lane"]], file.spans["start_ns"]
    found: Columns = {}
    for name, kind in (("launch", RUNTIME), ("launcher", OP)):
        begins = rows_at(file.tracks.track, start_ns, np.flatnonzero(file.kind == kind), track, pairs["begin_ns"])
        found[name] = np.full(len(file), -1, np.int32)
        found[name][ends[ends >= 0]] = begins[ends >= 0]
    return found


def flows_to_devices(file: ChosenSpans, categories: tuple[str, ...]) -> tuple[Columns, Int64]:
    """Flows of some categories, and the event on a device that each one leads to, or -1."""
    pairs = flow_pairs(file.collector.flows, list(file.collector.categories), categories, file.labels)
    device_tracks = np.full(len(file.collector.lanes) + 1, -1, np.int32)
    device_tracks[file.spans["lane"][file.on_device]] = file.tracks.track[file.on_device]
    track = device_tracks[pairs["end_lane"]]
    rows = np.flatnonzero(file.on_device)
    return pairs, rows_at(file.tracks.track, file.spans["start_ns"], rows, track, pairs["end_ns"])
