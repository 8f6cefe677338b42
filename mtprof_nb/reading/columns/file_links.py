"""Flows of a file: where each one begins, and the events that it leads to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mtprof_nb.model.schema import Columns, Int32, Int64
from mtprof_nb.reading.columns.chosen_spans import ChosenSpans
from mtprof_nb.reading.spans.growing_columns import GrowingColumns


def flow_pairs(flows: GrowingColumns, categories: Sequence[object], wanted: Sequence[str], labels: Int32) -> Columns:
    """Lanes and times of the first begin and of each end of the flows of some categories: `begin_lane`, `end_ns`, …

    `labels` has a number for each lane: processes with different ones may use the same numbers for their flows.
    """
    chosen = np.array([category in wanted for category in categories] or [False], np.bool_)
    columns = {name: flows.whole(name) for name in ("category", "lane", "id", "at_ns", "is_end")}
    rows = np.flatnonzero(chosen[columns["category"]])
    is_end = columns["is_end"][rows].astype(np.bool_)
    begins, ends = rows[~is_end], rows[is_end]
    # A number may be used again: a flow ends at the next end with its number.
    key, moment = columns["id"].astype(np.int64), columns["at_ns"]
    key = key * (int(labels.max(initial=0)) + 1) + labels[columns["lane"]]
    begins = begins[np.lexsort((moment[begins], key[begins]))]
    if not len(begins):
        ends = ends[:0]
    low = np.searchsorted(key[begins], key[ends], "left")
    high = np.searchsorted(key[begins], key[ends], "right")
    matched = high > low
    ends, begin = ends[matched], begins[low[matched]]
    return {
        "begin_lane": columns["lane"][begin],
        "begin_ns": moment[begin],
        "end_lane": columns["lane"][ends],
        "end_ns": moment[ends],
    }


def rows_at(track: Int32, start_ns: Int64, among: Int64, tracks: Int32, moments_ns: Int64) -> Int64:
    """For each moment on a track the last of the rows `among` that starts there and then, or -1."""
    rows = np.full(len(tracks), -1, np.int64)
    if not len(tracks):
        return rows
    moments, starts = np.sort(moments_ns), start_ns[among]
    # Most rows start at no such moment.
    among = among[moments.take(np.searchsorted(moments, starts), mode="clip") == starts]
    if not len(among):
        return rows
    among = among[np.lexsort((among, start_ns[among], track[among]))]
    width = len(moments) + 1
    key = track[among].astype(np.int64) * width + np.searchsorted(moments, start_ns[among])
    wanted = tracks.astype(np.int64) * width + np.searchsorted(moments, moments_ns)
    place = np.searchsorted(key, wanted, "right") - 1
    there = (place >= 0) & (key[np.maximum(place, 0)] == wanted) & (tracks >= 0)
    rows[there] = among[place[there]]
    return rows


def flows_to_devices(file: ChosenSpans, categories: tuple[str, ...]) -> tuple[Columns, Int64]:
    """Flows of some categories, and the event on a device that each one leads to, or -1."""
    pairs = flow_pairs(file.collector.flows, list(file.collector.categories), categories, file.labels)
    device_tracks = np.full(len(file.collector.lanes) + 1, -1, np.int32)
    device_tracks[file.spans["lane"][file.on_device]] = file.tracks.track[file.on_device]
    track = device_tracks[pairs["end_lane"]]
    rows = np.flatnonzero(file.on_device)
    return pairs, rows_at(file.tracks.track, file.spans["start_ns"], rows, track, pairs["end_ns"])
